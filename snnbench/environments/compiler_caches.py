"""The caches of a worker's compilers, and the stale locks that a killed worker leaves in them."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from snnbench.digest import digest
from snnbench.machine.kernel_files import ROOT, match_in

CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
"""Environment variables that name compiler caches. A timed worker gets an empty folder, so that the first call of every
trial includes the compilation."""
EXTENSIONS = "TORCH_EXTENSIONS_DIR"
"""The variable for the folder where torch builds C++ and CUDA extensions. They are built with the network, outside any
timed pass. Each Python has a permanent folder, because a build takes minutes."""


def shared(home: Path) -> dict[str, str]:
    """The cache variables of a worker that is not timed."""
    folder = home / "compilers"
    return dict.fromkeys(CACHES, str(folder)) | {EXTENSIONS: str(folder / "torch-extensions")}


def of_own_programs(home: Path) -> dict[str, str]:
    """The variable for the folder of snnbench's own programs of JAX for a card (backends/jax/programs.py)."""
    return {"SNNBENCH_JAX_PROGRAMS": str(home / "compilers" / "jax-programs" / _instructions())}


def of_jax(home: Path) -> dict[str, str]:
    """Variables by which JAX keeps what it compiles, in a folder for processors with the same instructions."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(home / "compilers" / "jax" / _instructions()),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _instructions() -> str:
    """A digest of the instructions of this machine's processors."""
    return digest(match_in(r"(?:flags|Features)\s*: (.*)", ROOT / "proc/cpuinfo"))


def extensions_folder(env: Mapping[str, str], python: Path) -> Path:
    """The folder of extensions for the torch of this Python, in a worker with the variables `env`."""
    return Path(env[EXTENSIONS]) / digest(str(python))


def release_locks(folder: Path, older_than_s: float = 0.0) -> None:
    """Remove stale locks of builds: torch would wait for them forever."""
    for lock in folder.glob("*/lock"):
        with suppress(FileNotFoundError):
            if time.time() - lock.stat().st_mtime >= older_than_s:
                lock.unlink()
