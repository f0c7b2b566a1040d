"""Where the compilers of a worker keep what they made, and the locks that a killed worker leaves behind."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from snnbench.digest import digest

CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
"""Environment variables that name what an earlier process compiled. Where passes are timed they name an empty folder,
or one trial's first call would hold what another one's does not."""
EXTENSIONS = "TORCH_EXTENSIONS_DIR"
"""Where torch builds C++ and CUDA extensions while a network is built, which no time holds: each Python has a folder
that stays, because a build takes minutes."""


def shared(home: Path) -> dict[str, str]:
    """The variables of a worker that times nothing."""
    folder = home / "compilers"
    return dict.fromkeys(CACHES, str(folder)) | {EXTENSIONS: str(folder / "torch-extensions")}


def extensions_folder(env: Mapping[str, str], python: Path) -> Path:
    """Where extensions for the torch of this Python are built, in a worker with the variables `env`."""
    return Path(env[EXTENSIONS]) / digest(str(python))


def release_locks(folder: Path, older_than_s: float = 0.0) -> None:
    """Remove the locks of builds that nobody does any more: torch waits for them without an end."""
    for lock in folder.glob("*/lock"):
        with suppress(FileNotFoundError):
            if time.time() - lock.stat().st_mtime >= older_than_s:
                lock.unlink()
