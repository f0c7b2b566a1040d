"""Files: the home folder, files written whole or not at all, and locks against other processes."""

import fcntl
import os
import threading
from pathlib import Path
from typing import IO, Any


def home() -> Path:
    """The folder of all that snnbench keeps between runs: environments, compiled kernels, measured noise."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SNNBENCH_HOME") or cache / "snnbench").expanduser().absolute()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, and rename it once it is on the disk. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with draft.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def lock(stream: IO[Any] | int, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file or descriptor until it is closed. Returns False if it is locked, and `wait` is False."""
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(stream, how if wait else how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
