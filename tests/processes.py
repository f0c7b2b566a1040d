"""Other processes, as a test sees them: which were noted in a file, and whether they are still there."""

import time
from collections.abc import Callable
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether this process runs. A zombie, which only its parent can bury, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def noted(path: Path) -> list[int]:
    """The pids in a file to which fakes append theirs."""
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Whether this comes true in so many seconds."""
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return met
