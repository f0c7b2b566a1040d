"""A record is what became of one cell, one line of JSON; a recording is a folder of them from one machine.

    results/2026-11-21_quick_<machine>/
        config.json       the resolved config, and what was selected from it
        machine.json      facts of the machine
        records.jsonl     one record a line, appended and flushed to the disk before the next cell starts
        environments.json versions of everything that was installed, by environment key

Nothing here is ever rewritten but environments.json, which only grows. A line that a kill or a full disk tore is not
a record, and its cell is run again.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import IO, Any

SCHEMA = 1
"""1: first version."""

RECORDS, CONFIG, MACHINE, ENVIRONMENTS = "records.jsonl", "config.json", "machine.json", "environments.json"
REPEATED = ("cancelled",)
"""Kinds of failure that say nothing of the cell: the next run does it again."""


class RecordingError(ValueError):
    """A folder is not the recording asked for, or cannot be written; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One cell. Durations are raw: a repetition's nanoseconds are those of `passes` passes.

    `outcome` has `status` measured (with `verdict`), skipped or failed (with `kind` and `reason`). A record that is not
    measured has neither `phases` nor `memory`.
    """

    cell: str
    library: str
    variant: str
    trial: int
    measure: str
    case: dict[str, Any]
    outcome: dict[str, Any]
    version: str | None = None
    adapter: str = ""
    environment: str = ""
    checks: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    started: str = ""
    wall_s: float = 0.0
    log: str = ""

    def __post_init__(self) -> None:
        if self.outcome["status"] != "measured" and (self.phases or self.memory):
            raise ValueError(f"cell {self.cell} is {self.outcome['status']}, yet holds measurements")

    @property
    def status(self) -> str:
        """measured, skipped or failed."""
        return str(self.outcome["status"])


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as read: `torn` counts lines that are not records."""

    folder: Path
    config: dict[str, Any]
    machine: dict[str, Any]
    records: list[Record]
    torn: int

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name


def read(folder: Path) -> Recording:
    """The recording in `folder`, also while it is written. Of two records of a cell the later counts."""
    if not (folder / RECORDS).is_file():
        raise RecordingError(f"{folder}: no recording here (no {RECORDS})")
    records: dict[str, Record] = {}
    torn = 0
    for line in (folder / RECORDS).read_text(encoding="utf-8", errors="replace").splitlines():
        record = _parse(line)
        if record is None:
            torn += bool(line.strip())
        else:
            records[record.cell] = record
    return Recording(folder, _json(folder / CONFIG), _json(folder / MACHINE), list(records.values()), torn)


def choose(root: Path, name: str, identity: str, machine: str, today: date) -> Path:
    """The folder under `root` for a run: an unfinished one of the same config and machine, else a new dated one."""
    for config in sorted(root.glob(f"*/{CONFIG}"), reverse=True):
        found = _json(config)
        if (found.get("identity"), found.get("machine")) == (identity, machine) and not found.get("finished"):
            return config.parent
    stem = f"{today.isoformat()}_{name}_{machine}"
    taken = {path.name for path in root.glob(f"{stem}*")}
    number = 1
    while (folder := stem if number == 1 else f"{stem}_{number}") in taken:
        number += 1
    return root / folder


@contextmanager
def append(folder: Path, config: dict[str, Any], machine: dict[str, Any]) -> Iterator["Writer"]:
    """Open a recording for appending, made if it is not there. Raises RecordingError, RecordingBusy included."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / RECORDS).open("ab+") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RecordingError(f"{folder}: another run is writing here") from error
            yield Writer(folder, stream, config, machine)
    except OSError as error:
        raise RecordingError(f"{folder}: {error.strerror or error}; what was measured so far is kept") from error


class Writer:
    """The one place that writes a recording."""

    def __init__(self, folder: Path, stream: IO[bytes], config: dict[str, Any], machine: dict[str, Any]) -> None:
        self.folder, self._stream = folder, stream
        known = _json(folder / CONFIG)
        if known and known["identity"] != config["identity"]:
            raise RecordingError(f"{folder}: holds a recording of another config ({known['config']['name']})")
        if not known:
            _replace(folder / MACHINE, machine)
            _replace(folder / CONFIG, config)
        if stream.seek(0, os.SEEK_END) and not _ends_line(stream):
            self._write(b"\n")  # a torn line ends here and stays what it is: no record

    def done(self) -> set[str]:
        """Cells that need not be run again."""
        return {r.cell for r in read(self.folder).records if r.outcome.get("kind") not in REPEATED}

    def add(self, record: Record) -> None:
        """Append one record, on the disk when this returns."""
        self._write(json.dumps({"schema": SCHEMA, **asdict(record)}, allow_nan=False).encode() + b"\n")

    def environments(self, versions: dict[str, dict[str, str]]) -> None:
        """Remember what is installed where."""
        _replace(self.folder / ENVIRONMENTS, _json(self.folder / ENVIRONMENTS) | versions)

    def finish(self) -> None:
        """Every planned cell is here: the next run of the same config starts a recording of its own."""
        _replace(self.folder / CONFIG, _json(self.folder / CONFIG) | {"finished": True})

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()
        os.fsync(self._stream.fileno())


def _parse(line: str) -> Record | None:
    try:
        fields = json.loads(line)
        if fields.pop("schema") > SCHEMA:
            raise RecordingError(f"written by a newer snnbench (schema above {SCHEMA}); install that one")
        return Record(**fields)
    except RecordingError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _ends_line(stream: IO[bytes]) -> bool:
    stream.seek(-1, os.SEEK_END)
    return stream.read(1) == b"\n"


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise RecordingError(f"{path}: {error}") from error
    return found


def _replace(path: Path, value: dict[str, Any]) -> None:
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(value, indent=2, sort_keys=True) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(path)
