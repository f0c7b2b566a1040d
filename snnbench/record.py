"""A record is what became of one cell, one line of JSON; a recording is a folder of them from one machine.

    results/2026-11-21_quick_<machine>/
        config.json       the resolved config, and what was selected from it
        machine.json      facts of the machine
        records.jsonl     one record a line, appended and flushed to the disk before the next cell starts
        environments.json versions of everything that was installed, by environment key

No record is ever rewritten; environments.json grows, and config.json learns at the end that the run is finished. A line
that a kill or a full disk tore is not a record, and its cell is run again.
"""

import fcntl
import gc
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import date
from io import FileIO
from pathlib import Path
from typing import Any

from snnbench import schema

SCHEMA = 3
"""1: first version.
2: `peaks`, and in each phase `flops`, `least_bytes`, `floor_ns` and `times_floor`.
3: the case's `input_kind`, which was always "spikes" before; `inference_only` and `own_rule` in an outcome, `common-`
checks.
"""

RECORDS, CONFIG, MACHINE, ENVIRONMENTS = "records.jsonl", "config.json", "machine.json", "environments.json"
FILES = (RECORDS, CONFIG, MACHINE, ENVIRONMENTS)
LOCK_AGAIN_S = 0.05
"""How soon a lock is tried once more: whoever only asks who writes holds it for less."""


class RecordingError(ValueError):
    """A folder is not the recording asked for, or cannot be written; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One cell. Durations are raw: a repetition's nanoseconds are those of `passes` passes.

    `outcome` has `status` measured (with `verdict`), skipped or failed (with `kind` and `reason`). A record that is not
    measured has no `phases`, no `memory`, no `peaks` and not even the seconds that its worker lived.
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
    peaks: dict[str, Any] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    started: str = ""
    wall_s: float | None = None
    log: str = ""

    def __post_init__(self) -> None:
        held = self.phases or self.memory or self.peaks or self.wall_s is not None
        if self.outcome["status"] != "measured" and held:
            raise ValueError(f"cell {self.cell} is {self.outcome['status']}, yet holds measurements")

    @property
    def status(self) -> str:
        """measured, skipped or failed."""
        return str(self.outcome["status"])


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as read: `torn` counts lines that are not records; `environments` has versions by package by key."""

    folder: Path
    config: dict[str, Any]
    machine: dict[str, Any]
    records: list[Record]
    torn: int
    environments: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name


def read(folder: Path) -> Recording:
    """The recording in `folder`, also while it is written. Of two records of a cell the later counts.

    Of a contender only the records of its latest adapter file and environment count: what was measured before either
    changed is no trial of what there is now.
    """
    if not (folder / RECORDS).is_file():
        raise RecordingError(f"{folder}: no recording here (no {RECORDS})")
    records: dict[str, Record] = {}
    latest: dict[tuple[str, str], tuple[str, str]] = {}
    torn = 0
    with _uncollected():
        for line in (folder / RECORDS).read_text(encoding="utf-8", errors="replace").split("\n"):
            record = parse(line, folder)
            if record is None:
                torn += bool(line.strip())
            else:
                records[record.cell] = record
                latest[record.library, record.variant] = (record.adapter, record.environment)
    counting = [one for one in records.values() if (one.adapter, one.environment) == latest[one.library, one.variant]]
    config, machine, environments = (_json(folder / name) for name in (CONFIG, MACHINE, ENVIRONMENTS))
    return Recording(folder, config, machine, counting, torn, environments)


def config_of(folder: Path) -> dict[str, Any]:
    """What config.json in `folder` says; nothing where there is none. Raises RecordingError."""
    return _json(folder / CONFIG)


def choose(
    root: Path, name: str, identity: str, machine: str, today: date, fresh: bool = False, reopen: bool = False
) -> Path:
    """The folder under `root` for a run: an unfinished one of the same config and machine, else a new dated one.

    With `fresh` always a new one; with `reopen` the last one of the same config and machine, finished or not.
    """
    for config in [] if fresh else sorted(root.glob(f"*/{CONFIG}"), reverse=True):
        found: dict[str, Any] = {}
        with suppress(RecordingError):  # a broken recording is no reason not to start another
            found = _json(config)
        same = (found.get("identity"), found.get("machine")) == (identity, machine)
        if same and (reopen or not found.get("finished")):
            return config.parent
    stem = f"{today.isoformat()}_{name}_{machine}"
    taken = {path.name for path in root.glob(f"{stem}*")}
    number = 1
    while (folder := stem if number == 1 else f"{stem}_{number}") in taken:
        number += 1
    return root / folder


@contextmanager
def append(folder: Path, config: dict[str, Any], machine: dict[str, Any]) -> Iterator["Writer"]:
    """Open a recording for appending, made if it is not there. Raises RecordingError."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Unbuffered: what a full disk refused must not be tried again when the stream is closed.
        stream = (folder / RECORDS).open("ab+", buffering=0)
    with stream:
        if not (_locked(stream) or _locked(stream, LOCK_AGAIN_S)):
            raise RecordingError(f"{folder}: another run is writing here")
        yield Writer(folder, stream, config, machine)


class Writer:
    """The one place that writes a recording."""

    def __init__(self, folder: Path, stream: FileIO, config: dict[str, Any], machine: dict[str, Any]) -> None:
        self.folder, self._stream = folder, stream
        known = _json(folder / CONFIG)
        if known and known.get("identity") != config["identity"]:
            raise RecordingError(f"{folder}: holds a recording of another config or machine; name another folder")
        if not known:
            self._replace(MACHINE, machine)
            self._replace(CONFIG, config)
        if stream.seek(0, os.SEEK_END) and not _ends_line(stream):
            self._write(b"\n")  # a torn line ends here and stays what it is: no record

    def done(self, retry: Collection[str] = ()) -> dict[str, dict[str, Any]]:
        """Outcomes of the cells that need not be run again."""
        found = ((one.cell, one.outcome) for one in read(self.folder).records)
        return {cell: outcome for cell, outcome in found if not repeated(outcome, retry)}

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
        known = _json(self.folder / CONFIG)
        if known | cells != known:
            self._replace(CONFIG, known | cells)

    def environments(self, versions: dict[str, dict[str, str]]) -> None:
        """Remember what is installed where."""
        self._replace(ENVIRONMENTS, _json(self.folder / ENVIRONMENTS) | versions)

    def finish(self, finished: bool = True) -> None:
        """Every planned cell is here: the next run of the same config starts a recording of its own. Or not yet."""
        if _json(self.folder / CONFIG).get("finished", False) != finished:
            self._replace(CONFIG, _json(self.folder / CONFIG) | {"finished": finished})

    def _write(self, data: bytes) -> None:
        with writing(self.folder):
            while data:
                data = data[self._stream.write(data) :]
            os.fsync(self._stream.fileno())

    def _replace(self, name: str, value: dict[str, Any]) -> None:
        write_document(self.folder / name, value)


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document of a recording, whole or not at all. Raises RecordingError."""
    _replace_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n")


def _replace_text(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    with writing(path.parent):
        with fresh.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)


def repeated(outcome: Mapping[str, Any], retry: Collection[str] = ()) -> bool:
    """Whether the next run does the cell again, because how it ended says nothing of it, or is a kind to `retry`.

    A cell is no more to blame for the loss of its node, of which a scheduler told, than for an interrupt.
    """
    kind = outcome.get("kind")
    return kind == "cancelled" or (kind == "lost" and "scheduler" in outcome) or kind in retry


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the search for cycles, of which parsed records have none: it was two thirds of reading 10,000 of them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the file system refuses while something is written there, as a RecordingError."""
    try:
        yield
    except OSError as error:
        kept = "what is there is kept, and the same command continues once it can"
        raise RecordingError(f"{folder}: cannot be written ({error.strerror or error}); {kept}") from error


def parse(line: str, folder: Path) -> Record | None:
    """The record in a line, or None where it is none. Raises RecordingError where its schema is a newer one."""
    try:
        document = _loaded(line)
        if isinstance(document, dict) and type(document.get("schema")) is int and document["schema"] > SCHEMA:
            raise RecordingError(f"{folder}: written by a newer snnbench (schema above {SCHEMA}); install that one")
        if document["schema"] < 3:
            document["case"]["input_kind"] = "spikes"
        if schema.complaint("record", document):
            return None
        return Record(**{name: value for name, value in document.items() if name != "schema"})
    except RecordingError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _loaded(text: str) -> Any:
    """JSON, in which there are no NaN and infinities, and no characters that do something to a terminal."""
    document = json.loads(text, parse_constant=_no_number)
    escaped = "\\u" in text or not text.isascii()
    return schema.cleaned(document) if escaped else document


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _locked(stream: FileIO, after_s: float = 0.0) -> bool:
    """Whether the lock of a recording could be had."""
    time.sleep(after_s)
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _ends_line(stream: FileIO) -> bool:
    stream.seek(-1, os.SEEK_END)
    return stream.read(1) == b"\n"


def _json(path: Path) -> dict[str, Any]:
    try:
        found = _loaded(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise RecordingError(f"{path}: expected a JSON object")
    if complaint := schema.complaint(path.stem, found):
        raise RecordingError(f"{path}: {complaint}")
    return found
