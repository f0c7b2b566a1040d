"""The writer of a recording: it appends a line for each cell, on the disk before the next cell starts.

Records are never rewritten, except that a merge writes all of them anew. environments.json grows, and config.json is
marked as finished at the end of the run, or as closed.
"""

import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date
from io import FileIO
from pathlib import Path
from typing import Any, Literal

from snnbench.cases.outcome import Outcome
from snnbench.files import lock, write_whole
from snnbench.machine import description
from snnbench.recording import attempts, schema
from snnbench.recording.attempts import Attempts
from snnbench.recording.facts import flat
from snnbench.recording.lookup import inside
from snnbench.recording.merged_machine import continued
from snnbench.recording.reading import CONFIG, ENVIRONMENTS, MACHINE, RECORDS, document, read
from snnbench.recording.record import Record, RecordingError, readable_line, repeated

LOCK_AGAIN_S = 0.05
"""Seconds before a second try for the lock: a process that only asks whether a run writes holds it for less."""


Reuse = Literal["unfinished", "any", "none"]
"""Which earlier folders of the same run are used again."""


def choose(root: Path, name: str, identity: str, machine: str, today: date, reuse: Reuse = "unfinished") -> Path:
    """The folder under `root` for a run: the last one of the same config and machine that may be used again (`reuse`).

    Without any it is a new one, dated `today`.
    """
    for folder in [] if reuse == "none" else sorted(inside(root, CONFIG), key=_numbered, reverse=True):
        known: dict[str, Any] = {}
        with suppress(RecordingError):  # a malformed recording must not prevent a new one
            known = document(folder / CONFIG)
        same = (known.get("identity"), known.get("machine")) == (identity, machine)
        if same and (reuse == "any" or not known.get("finished")):
            return folder
    stem = f"{today.isoformat()}_{name}_{machine}"
    taken = {path.name for path in root.glob(f"{stem}*")}
    number = 1
    while (free := stem if number == 1 else f"{stem}_{number}") in taken:
        number += 1
    return root / free


def _numbered(folder: Path) -> tuple[str, int]:
    """(folder name without its number, number): a sort key that puts the tenth run of a day after the ninth."""
    stem, _, number = folder.name.rpartition("_")
    return (stem, int(number)) if stem and re.fullmatch(r"[0-9]+", number) else (folder.name, 1)


@contextmanager
def append(folder: Path, config: dict[str, Any], machine: dict[str, Any]) -> Iterator["Writer"]:
    """Open a recording for appending; make it if it is missing. Raises RecordingError."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Unbuffered: data that a full disk refused must not be written again when the stream is closed.
        stream = (folder / RECORDS).open("ab+", buffering=0)
    with stream:
        if not lock(stream, wait=False):
            time.sleep(LOCK_AGAIN_S)
            if not lock(stream, wait=False):
                raise RecordingError(f"{folder}: another run is writing here")
        yield Writer(folder, stream, config, machine)


class Writer:
    """Writes a recording; the only class that does."""

    def __init__(self, folder: Path, stream: FileIO, config: dict[str, Any], machine: dict[str, Any]) -> None:
        self.folder, self._stream, self._config, self._machine = folder, stream, config, machine
        known = document(folder / CONFIG)
        if known and known.get("identity") != config.get("identity"):
            there, here = (description.recorded_model(facts) for facts in (document(folder / MACHINE), machine))
            if None not in (there, here) and there != here:
                raise RecordingError(f"{folder}: is of another machine, {there}; this is {here}; name another folder")
            raise RecordingError(f"{folder}: holds a recording of another {other(known, config)}; name another folder")
        if not known:
            self._replace(MACHINE, machine)
            self._replace(CONFIG, config)
        if stream.seek(0, os.SEEK_END) and not _ends_line(stream):
            self._write(b"\n")  # ends a torn line, so that the next record has its own line

    def done(self, retry: Collection[str] = ()) -> dict[str, Outcome]:
        """Outcomes of the cells that need not be run again."""
        recording = read(self.folder)
        outcomes = ((one.cell, one.outcome) for one in (*recording.records, *recording.exchanges))
        return {cell: outcome for cell, outcome in outcomes if not repeated(outcome, retry)}

    def attempts(self) -> Attempts:
        """The attempts of its cells so far."""
        return attempts.of(read(self.folder))

    def add(self, record: Record) -> None:
        """Append one record; it is on the disk when this returns. Raises RecordingError."""
        self._write(readable_line(record, self.folder).encode())

    def replace(self, records: Iterable[Record], config: dict[str, Any], machine: dict[str, Any]) -> None:
        """Replace the whole recording, for a merge. `records` must include the records that are there."""
        _replace_text(self.folder / RECORDS, "".join(record.encode() for record in records))
        self._replace(MACHINE, machine)
        self._replace(CONFIG, config)

    def plan(self, cells: dict[str, int]) -> None:
        """Store the number of planned cells: `planned` of this recording, and `whole_planned` of all shards."""
        known = document(self.folder / CONFIG)
        if known | cells != known:
            self._replace(CONFIG, known | cells)

    def resume(self) -> list[str]:
        """Record which facts of the machine changed since the recording began, before more cells are; returns them."""
        before, began = document(self.folder / MACHINE), document(self.folder / CONFIG)
        whole = continued(before, self._machine, (began.get("snnbench"), self._config.get("snnbench")))
        if whole != before:
            self._replace(MACHINE, whole)
        return list(whole.get("varying", {}))

    def environments(self, versions: dict[str, dict[str, str]]) -> None:
        """Add the installed versions of environments."""
        self._replace(ENVIRONMENTS, document(self.folder / ENVIRONMENTS) | versions)

    def finish(self, finished: bool = True) -> None:
        """Mark the recording as finished or not. After a finished one, the same config starts a new recording."""
        known = document(self.folder / CONFIG)
        if known.get("finished", False) != finished or "closed" in known:
            self._replace(CONFIG, {name: known[name] for name in known if name != "closed"} | {"finished": finished})

    def close(self, reason: str) -> None:
        """Mark the recording as closed: its missing cells stay missing for this reason, unless its run continues."""
        self._replace(CONFIG, document(self.folder / CONFIG) | {"closed": reason})

    def _write(self, data: bytes) -> None:
        with writing(self.folder):
            while data:
                data = data[self._stream.write(data) :]
            os.fsync(self._stream.fileno())

    def _replace(self, name: str, value: dict[str, Any]) -> None:
        if wrong := schema.complaint(Path(name).stem, value):
            raise RecordingError(f"{self.folder / name}: cannot hold {wrong}")
        write_document(self.folder / name, value)


def other(known: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """What the run of the config.json `known` has otherwise than the run of `config`, in a few words."""
    there, here = (dict(flat(one.get("config", {}))) for one in (known, config))
    absent = object()
    keys = [key for key in {**there, **here} if there.get(key, absent) != here.get(key, absent)]
    if keys:
        return f"config ({', '.join(keys[:3])}{' and others' if len(keys) > 3 else ''})"
    for name, what in (("only", "choice of contenders (--only)"), ("machine", "machine"), ("sides", "pair of sides")):
        if known.get(name) != config.get(name):
            return what
    return "machine, Python (--env) or file of a side"


def write_document(path: Path, content: Mapping[str, Any]) -> None:
    """Write a document of a recording atomically. Raises RecordingError."""
    _replace_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def _replace_text(path: Path, text: str) -> None:
    with writing(path.parent):
        write_whole(path, text.encode())


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an OSError of the file system into a RecordingError."""
    try:
        yield
    except OSError as error:
        advice = "its records are kept, and the same command continues once it can be written"
        raise RecordingError(f"{folder}: cannot be written ({error.strerror or error}); {advice}") from error


def _ends_line(stream: FileIO) -> bool:
    stream.seek(-1, os.SEEK_END)
    return stream.read(1) == b"\n"
