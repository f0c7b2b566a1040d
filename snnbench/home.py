"""The folder for what snnbench keeps between runs: environments, compiled kernels, notes of noise."""

import os
from pathlib import Path


def home() -> Path:
    """The folder for what snnbench keeps between runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SNNBENCH_HOME") or cache / "snnbench").expanduser().absolute()
