"""Files: the home folder, files written whole or not at all, and locks against other processes."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def home() -> Path:
    """The folder of all that snnbench keeps between runs: environments, compiled kernels, measured noise."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SNNBENCH_HOME") or cache / "snnbench").expanduser().absolute()


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """Another name to write a file under; it gets the name `path` once it is on the disk. Raises OSError.

    If writing fails, the file is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        yield unfinished
        with unfinished.open("rb+") as stream:
            os.fsync(stream.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, and rename it once it is on the disk. Raises OSError."""
    with draft(path) as unfinished:
        unfinished.write_bytes(content)


def lock(stream: IO[Any] | int, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file or descriptor until it is closed. Returns False if it is locked, and `wait` is False."""
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(stream, how if wait else how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
