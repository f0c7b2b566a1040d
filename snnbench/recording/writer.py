"""The writer: the one place that writes a recording, a line a cell, on the disk before the next cell starts.

No record is ever rewritten, but for a merge, which writes all of them anew; environments.json grows, and config.json
learns at the end that the run is finished.
"""

import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import date
from io import FileIO
from pathlib import Path
from typing import Any

from snnbench.files import lock, write_whole
from snnbench.recording import attempts
from snnbench.recording.attempts import Attempts
from snnbench.recording.record import (
    CONFIG,
    ENVIRONMENTS,
    MACHINE,
    RECORDS,
    SCHEMA,
    Record,
    RecordingError,
    document,
    read,
    repeated,
)

LOCK_AGAIN_S = 0.05
"""How soon a lock is tried once more: whoever only asks who writes holds it for less."""


def choose(
    root: Path, name: str, identity: str, machine: str, today: date, fresh: bool = False, reopen: bool = False
) -> Path:
    """The folder under `root` for a run: an unfinished one of the same config and machine, else a new dated one.

    With `fresh` always a new one; with `reopen` the last one of the same config and machine, finished or not.
    """
    for config in [] if fresh else sorted(root.glob(f"*/{CONFIG}"), key=_numbered, reverse=True):
        known: dict[str, Any] = {}
        with suppress(RecordingError):  # a broken recording is no reason not to start another
            known = document(config)
        same = (known.get("identity"), known.get("machine")) == (identity, machine)
        if same and (reopen or not known.get("finished")):
            return config.parent
    stem = f"{today.isoformat()}_{name}_{machine}"
    taken = {path.name for path in root.glob(f"{stem}*")}
    number = 1
    while (folder := stem if number == 1 else f"{stem}_{number}") in taken:
        number += 1
    return root / folder


def _numbered(config: Path) -> tuple[str, int]:
    """A folder's name without its number, and that number, by which the tenth of a day comes after the ninth."""
    stem, _, number = config.parent.name.rpartition("_")
    return (stem, int(number)) if stem and re.fullmatch(r"[0-9]+", number) else (config.parent.name, 1)


@contextmanager
def append(folder: Path, config: dict[str, Any], machine: dict[str, Any]) -> Iterator["Writer"]:
    """Open a recording for appending, made if it is not there. Raises RecordingError."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Unbuffered: what a full disk refused must not be tried again when the stream is closed.
        stream = (folder / RECORDS).open("ab+", buffering=0)
    with stream:
        if not lock(stream, wait=False):
            time.sleep(LOCK_AGAIN_S)
            if not lock(stream, wait=False):
                raise RecordingError(f"{folder}: another run is writing here")
        yield Writer(folder, stream, config, machine)


class Writer:
    """The one place that writes a recording."""

    def __init__(self, folder: Path, stream: FileIO, config: dict[str, Any], machine: dict[str, Any]) -> None:
        self.folder, self._stream = folder, stream
        known = document(folder / CONFIG)
        if known and known.get("identity") != config["identity"]:
            raise RecordingError(f"{folder}: holds a recording of another config or machine; name another folder")
        if not known:
            self._replace(MACHINE, machine)
            self._replace(CONFIG, config)
        if stream.seek(0, os.SEEK_END) and not _ends_line(stream):
            self._write(b"\n")  # a torn line ends here and stays what it is: no record

    def done(self, retry: Collection[str] = ()) -> dict[str, dict[str, Any]]:
        """Outcomes of the cells that need not be run again."""
        outcomes = ((one.cell, one.outcome) for one in read(self.folder).records)
        return {cell: outcome for cell, outcome in outcomes if not repeated(outcome, retry)}

    def attempts(self) -> Attempts:
        """The attempts of its cells so far."""
        return attempts.of(read(self.folder))

    def add(self, record: Record) -> None:
        """Append one record, on the disk when this returns."""
        self._write(json.dumps({"schema": SCHEMA, **asdict(record)}, allow_nan=False).encode() + b"\n")

    def replace(self, records: Iterable[Record], config: dict[str, Any], machine: dict[str, Any]) -> None:
        """Everything at once, in place of what is there, which the records must include: a merge."""
        lines = [json.dumps({"schema": SCHEMA, **asdict(one)}, allow_nan=False) + "\n" for one in records]
        _replace_text(self.folder / RECORDS, "".join(lines))
        self._replace(MACHINE, machine)
        self._replace(CONFIG, config)

    def plan(self, cells: dict[str, int]) -> None:
        """How many cells there are to be: `planned` here, and `whole_planned` in the run that this is a shard of."""
        known = document(self.folder / CONFIG)
        if known | cells != known:
            self._replace(CONFIG, known | cells)

    def environments(self, versions: dict[str, dict[str, str]]) -> None:
        """Remember what is installed where."""
        self._replace(ENVIRONMENTS, document(self.folder / ENVIRONMENTS) | versions)

    def finish(self, finished: bool = True) -> None:
        """Every planned cell is here: the next run of the same config starts a recording of its own. Or not yet."""
        if document(self.folder / CONFIG).get("finished", False) != finished:
            self._replace(CONFIG, document(self.folder / CONFIG) | {"finished": finished})

    def _write(self, data: bytes) -> None:
        with writing(self.folder):
            while data:
                data = data[self._stream.write(data) :]
            os.fsync(self._stream.fileno())

    def _replace(self, name: str, value: dict[str, Any]) -> None:
        write_document(self.folder / name, value)


def write_document(path: Path, content: Mapping[str, Any]) -> None:
    """Write a document of a recording, whole or not at all. Raises RecordingError."""
    _replace_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def _replace_text(path: Path, text: str) -> None:
    with writing(path.parent):
        write_whole(path, text.encode())


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the file system refuses while something is written there, as a RecordingError."""
    try:
        yield
    except OSError as error:
        advice = "what is there is kept, and the same command continues once it can"
        raise RecordingError(f"{folder}: cannot be written ({error.strerror or error}); {advice}") from error


def _ends_line(stream: FileIO) -> bool:
    stream.seek(-1, os.SEEK_END)
    return stream.read(1) == b"\n"
