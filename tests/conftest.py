"""Settings for all tests: slots and a home of the suite's own, and slow files first."""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

# A shell that starts the tests in the background ignores interrupts; the tests' child processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The suite's own slots and home: a run of snnbench on the same machine holds the user's slots, and its environments,
# compiled kernels and noise are the user's. The home stays, so that environments are made once.
if "SNNBENCH_SLOTS" not in os.environ:
    os.environ["SNNBENCH_SLOTS"] = tempfile.mkdtemp(prefix="snnbench-test-slots-")
    atexit.register(shutil.rmtree, os.environ["SNNBENCH_SLOTS"], ignore_errors=True)
if worker := os.environ.get("PYTEST_XDIST_WORKER"):  # tests run beside others: no time in them matters
    os.environ["SNNBENCH_SLOTS"] += f"/{worker}"  # they do not wait for each other
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads leave the CPU to the others
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's threads would spin for 0.1 s after each product
if "SNNBENCH_HOME" not in os.environ:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ["SNNBENCH_HOME"] = str(cache / "snnbench-tests")

# The tests start a thousand processes: each would compile all modules again where the shell forbids to write bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.set_threshold(20_000, 50, 100)  # the suite imports millions of objects, and looks through them less often so

NAMED_ONLY = [Path(__file__).parent / name for name in ("frameworks", "system", "release")]
"""Tests of minutes, or that need more than the extra `test`: collected only if the command line names them."""
SLOW = (
    "test_source.py",
    "release/test_docker.py",
    "release/test_networks.py",
    "release/test_slurm_faults.py",
    "release/test_slurm_nodes.py",
    "release/test_library_pins.py",
    "release/test_every_kernel.py",
    "release/kernels/test_kernel_cuda.py",
    "system/test_ab.py",
    "system/test_fuzz.py",
    "release/kernels/test_cuda_compilation.py",
)
"""The slowest files, in the order of their start: whole files go to processes, and a slow last one would run alone."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the folders that no argument names."""
    if collection_path not in NAMED_ONLY:
        return None
    named = [Path(argument.partition("::")[0]).absolute() for argument in config.args]
    return None if any(collection_path in (path, *path.parents) for path in named) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of slow files first."""
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(SLOW)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
