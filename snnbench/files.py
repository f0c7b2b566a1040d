"""Files: the home folder, files written whole or not at all, and locks against other processes."""

import errno
import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from snnbench.exits import UserError


class NoHome(UserError):
    """There is no folder for what snnbench keeps, or it cannot be used; the message says what to set."""


def home() -> Path:
    """The folder of all that snnbench keeps between runs: environments, compiled kernels, measured noise.

    Raises NoHome.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    chosen = os.path.expanduser(os.environ.get("SNNBENCH_HOME") or os.path.join(cache, "snnbench"))
    if chosen.startswith("~"):
        raise NoHome(f"{chosen}: this user has no home folder; set SNNBENCH_HOME to a folder that can be written")
    if os.pathsep in chosen:
        raise NoHome(f"{chosen}: a path with {os.pathsep!r} cannot stand in PYTHONPATH; set SNNBENCH_HOME to another")
    return Path(chosen).absolute()


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """Another name to write a file under; it gets the name `path` once it is on the disk. Raises OSError.

    If writing fails, the file is removed.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
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


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that a user names: whole, or not at all. Raises OSError, also if its folder is missing.

    A link stays a link, and a file keeps its mode. A pipe or a device is written as it is.
    """
    if _is_device(path):
        path.write_bytes(content)
        return
    try_file(path)
    target = Path(os.path.realpath(path))
    with draft(target) as unfinished:
        unfinished.write_bytes(content)
        if target.exists():
            unfinished.chmod(target.stat().st_mode)


def try_file(path: Path) -> None:
    """Raise OSError if no file can be written at `path`. Nothing changes there."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if not _is_device(path):
        tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))).close()


def try_folder(path: Path) -> None:
    """Raise OSError if no file can be written in a folder, or a missing one cannot be made. Nothing changes there."""
    whole = path.absolute()
    tempfile.TemporaryFile(dir=next(each for each in (whole, *whole.parents) if each.exists())).close()


def _is_device(path: Path) -> bool:
    """Whether this is a pipe or device, or a name of an open file as /dev/stdout: such a file is not replaced."""
    return path.exists() and not (path.is_file() and path.absolute().parts[1] not in ("dev", "proc"))


def lock(stream: IO[Any] | int, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file or descriptor until it is closed. Returns False if it is locked, and `wait` is False."""
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(stream, how if wait else how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
