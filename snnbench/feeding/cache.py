"""The cache of frames on the disk: whole, or not used at all.

A cache is filled in its folder, and gets its marker last. A folder without its marker is emptied first: a run may have
been killed while it filled the folder. A cache that was whole stays for later processes.
"""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from snnbench.adapter.refusal import Unavailable
from snnbench.digest import digest
from snnbench.files import home, lock, write_whole

VERSION = 1
"""Part of the name of a cache: another version has other frames."""
COLD = "cold-"
OLD_S = 24 * 3600.0
"""After this time the folder of a cold cache belongs to a process that was killed."""


@dataclass(frozen=True, slots=True)
class DiskCache:
    """A folder of frames, one file a sample."""

    folder: Path

    @property
    def marker(self) -> Path:
        """The file that exists once the cache is whole."""
        return self.folder.with_suffix(".whole")

    @property
    def is_whole(self) -> bool:
        """Whether every sample is there."""
        return self.marker.is_file() and self.folder.is_dir()

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(entry.stat().st_size for entry in os.scandir(self.folder))

    def empty(self) -> None:
        """Make an empty folder of it, without a marker."""
        self.marker.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def seal(self) -> None:
        """Mark it as whole."""
        write_whole(self.marker, b"\n")

    def remove(self) -> None:
        """Delete it."""
        self.marker.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def require_room(self, samples: int, done: int) -> None:
        """Raise Unavailable if the disk lacks room for all samples, judged by the `done` ones."""
        needed = self.size_bytes / done * (samples - done)
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise full(self.folder, f"it takes {needed / 1e9:.3g} GB more, and {free / 1e9:.3g} GB are left")


def full(folder: Path, why: str) -> Unavailable:
    """The refusal if a cache does not fit on its disk."""
    return Unavailable(
        f"the cache in {folder} cannot be written: {why}; free some, or set SNNBENCH_HOME to another disk"
    )


def is_full(error: BaseException) -> bool:
    """Whether an error is that of a full disk or of a limit on files. HDF5 has the number in its text only."""
    numbers = errno.ENOSPC, errno.EFBIG, errno.EDQUOT
    return getattr(error, "errno", None) in numbers or any(
        os.strerror(number) in str(error) or f"errno = {number}," in str(error) for number in numbers
    )


def warm(*identity: object) -> DiskCache:
    """The lasting cache of frames with this identity."""
    return DiskCache(_folder() / digest([VERSION, *map(str, identity)]))


def cold() -> DiskCache:
    """An empty cache of this process's own. Old ones of killed processes are removed."""
    for old in _folder().glob(f"{COLD}*"):
        if time.time() - old.stat().st_mtime > OLD_S:
            shutil.rmtree(old, ignore_errors=True)
    cache = DiskCache(_folder() / f"{COLD}{os.getpid()}-{time.monotonic_ns()}")
    cache.empty()
    return cache


@contextmanager
def locked(cache: DiskCache) -> Iterator[None]:
    """No other process fills the cache meanwhile."""
    cache.folder.parent.mkdir(parents=True, exist_ok=True)
    with cache.folder.with_suffix(".lock").open("w") as stream:
        lock(stream)
        yield


def _folder() -> Path:
    return home() / "frames"
