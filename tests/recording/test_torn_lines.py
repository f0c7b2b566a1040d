"""Tests of torn lines: a crash, a full disk or a closed folder costs one line at most."""

import errno
import io
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from snnbench.recording.reading import RECORDS, read
from snnbench.recording.record import Record, RecordingError
from snnbench.recording.writer import Writer
from tests.recording.test_record import ABOUT, FACTS, folder, keep, three

__all__ = ["folder", "three"]

NOBODY = 65534


@pytest.mark.parametrize("remainder", [1, 0.5, 0.99], ids=["one byte", "half", "almost all"])
def test_torn_last_line_is_ignored(folder: Path, three: list[Record], remainder: float) -> None:
    keep(folder, *three)
    whole = (folder / RECORDS).read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    torn = whole[: start + (remainder if isinstance(remainder, int) else int((len(whole) - start) * remainder))]
    (folder / RECORDS).write_bytes(torn)
    recording = read(folder)
    assert (recording.records, recording.torn) == (three[:2], 1)
    done = keep(folder, three[2])
    assert done == {one.cell for one in three[:2]}
    recording = read(folder)
    assert (recording.records, recording.torn) == (three, 1)
    assert (folder / RECORDS).read_bytes().startswith(torn + b"\n"), "existing bytes are never rewritten"


def test_last_line_without_newline_is_a_record(folder: Path, three: list[Record]) -> None:
    keep(folder, *three)
    whole = (folder / RECORDS).read_bytes()
    (folder / RECORDS).write_bytes(whole[:-1])
    assert keep(folder) == {one.cell for one in three}
    assert (folder / RECORDS).read_bytes() == whole


@pytest.mark.parametrize(
    "line",
    ["{}", "[]", "null", "\0\0\0", '{"schema": 1}', '{"schema": "new"}', '{"schema": 1, "cell": "x", "more": 1}'],
)
def test_malformed_line_is_counted(folder: Path, three: list[Record], line: str) -> None:
    keep(folder, *three)
    with (folder / RECORDS).open("a") as stream:
        stream.write(f"{line}\n")
    recording = read(folder)
    assert (recording.records, recording.torn) == (three, 1)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Act as a user without root's rights."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def refusal(folder: Path) -> str:
    """The error message for a folder that cannot be written."""
    with pytest.raises(RecordingError) as caught:
        keep(folder)
    return str(caught.value)


def test_unwritable_folder_is_one_line(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    advice = "its records are kept, and the same command continues once it can be written"
    with unprivileged():
        message = refusal(closed / "one")
    assert message == f"{closed}/one: cannot be written (Permission denied); {advice}"
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file" / "one") == f"{tmp_path}/file/one: cannot be written (Not a directory); {advice}"


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Limit the size of every file. The kernel writes up to the limit and refuses the rest, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_full_disk_tears_one_line_and_loses_nothing(folder: Path, three: list[Record]) -> None:
    keep(folder, *three[:2])
    size = (folder / RECORDS).stat().st_size
    with file_size_limit(size + 100), pytest.raises(RecordingError) as caught:
        keep(folder, three[2])
    assert str(caught.value).startswith(f"{folder}: cannot be written (File too large); its records are kept")
    assert (folder / RECORDS).stat().st_size == size + 100, "nothing is tried again once there is room"
    assert read(folder).records == three[:2]
    assert keep(folder, three[2]) == {one.cell for one in three[:2]}
    assert read(folder).records == three


class Full(io.FileIO):
    """A stream to a disk with room for a few bytes."""

    room = 30

    def write(self, data: Any) -> int:
        """Write as many bytes as fit, then raise the error of a full disk."""
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = super().write(data[: self.room])
        self.room -= written
        return written


def test_no_space_left_is_one_line(folder: Path, three: list[Record]) -> None:
    keep(folder, three[0])
    with Full(folder / RECORDS, "ab+") as stream, pytest.raises(RecordingError) as caught:
        Writer(folder, stream, ABOUT, FACTS).add(three[1])
    assert str(caught.value) == (
        f"{folder}: cannot be written (No space left on device); "
        "its records are kept, and the same command continues once it can be written"
    )
    assert (read(folder).records, read(folder).torn) == (three[:1], 1)
