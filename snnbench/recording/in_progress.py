"""Marks of running cells: each is a file beside the records until the cell has its record.

A mark holds the draft of a record. If the runner dies before it writes the record, the finder of the mark completes the
draft with how the runner ended.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from snnbench.files import lock
from snnbench.recording import reading
from snnbench.recording import record as records
from snnbench.recording.record import Record
from snnbench.recording.writer import writing

SUFFIX = ".running"


def put(folder: Path, record: Record) -> None:
    """Mark a cell as running. Raises RecordingError before it is measured if its record could not be read back."""
    line = records.readable_line(record, folder)
    with writing(folder):
        _path(folder, record.cell).write_text(line, encoding="utf-8")


def remove(folder: Path, cell: str) -> None:
    """Remove the mark of a cell that has its record."""
    with writing(folder):
        _path(folder, cell).unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Remove all marks that an earlier runner left, before a new one writes here."""
    for path in folder.glob(f"*{SUFFIX}"):
        remove(folder, path.stem)


def read(folder: Path) -> list[Record]:
    """The marked cells, in the order of their starts; their runner may be dead."""
    drafts = (records.parse(text, folder) for text in _texts(folder))
    return sorted((one for one in drafts if one is not None), key=lambda one: (one.started, one.cell))


def runs(folder: Path) -> bool:
    """Whether a process writes the recording in `folder` now."""
    with suppress(FileNotFoundError), (folder / reading.RECORDS).open("rb") as stream:
        return not lock(stream, shared=True, wait=False)
    return False


def _texts(folder: Path) -> Iterator[str]:
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(FileNotFoundError):  # the cell ended meanwhile
            yield path.read_text(encoding="utf-8", errors="replace")


def _path(folder: Path, cell: str) -> Path:
    return folder / f"{cell}{SUFFIX}"
