"""Marks: which cells of a recording are running, each a file beside the records until the cell has its own.

A mark holds the record that the cell gets should its runner not live to write one: whoever finds it puts in how that
runner ended.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from snnbench.files import lock
from snnbench.recording import record as records
from snnbench.recording.record import Record
from snnbench.recording.writer import writing

SUFFIX = ".running"


def put(folder: Path, record: Record) -> None:
    """From now on this cell is running."""
    text = json.dumps({"schema": records.SCHEMA, **asdict(record)}, allow_nan=False)
    with writing(folder):
        _path(folder, record.cell).write_text(text, encoding="utf-8")


def remove(folder: Path, cell: str) -> None:
    """The cell has its record."""
    with writing(folder):
        _path(folder, cell).unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Nothing is running: for whoever is about to write here, and finds what an earlier runner was at."""
    for path in folder.glob(f"*{SUFFIX}"):
        remove(folder, path.stem)


def read(folder: Path) -> list[Record]:
    """The marked cells, whether their runner lives or not, in the order in which they were started."""
    drafts = (records.parse(text, folder) for text in _texts(folder))
    return sorted((one for one in drafts if one is not None), key=lambda one: (one.started, one.cell))


def runs(folder: Path) -> bool:
    """Whether somebody writes the recording in `folder` at this moment."""
    with suppress(FileNotFoundError), (folder / records.RECORDS).open("rb") as stream:
        return not lock(stream, shared=True, wait=False)
    return False


def _texts(folder: Path) -> Iterator[str]:
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(FileNotFoundError):  # the cell ended meanwhile
            yield path.read_text(encoding="utf-8", errors="replace")


def _path(folder: Path, cell: str) -> Path:
    return folder / f"{cell}{SUFFIX}"
