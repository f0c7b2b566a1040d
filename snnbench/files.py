"""Files: written whole or not at all, and locked against another process."""

import fcntl
import os
import threading
from pathlib import Path
from typing import IO, Any


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


def lock(stream: IO[Any], shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file until it is closed. Without `wait` False says that another process holds it."""
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(stream, how if wait else how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
