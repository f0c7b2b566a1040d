"""Records and recordings: a record is one line of JSON for one cell, a recording is a folder of records.

    results/2026-11-21_quick_<machine>/
        config.json       the resolved config, and the selection from it
        machine.json      facts of the machine
        records.jsonl     one record a line
        environments.json installed versions, by environment key

A recording can be read at any moment, also while it is written. A line torn by a kill or a full disk is not a record;
its cell is run again.

This file is long: a record, its line, its recording and the rule for which of its attempts counts change together.
"""

import gc
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from snnbench import printable
from snnbench.adapter.contender import label
from snnbench.exits import UserError
from snnbench.plan.cell import Cell
from snnbench.recording import drift, schema
from snnbench.recording.drift import DRIFTED
from snnbench.worker.contention import CONTENDED_CPUS, others_cpus
from snnbench.workloads.case import Case
from snnbench.workloads.outcome import Outcome, decode

SCHEMA = 6
"""Additions by schema. 1: first version.
2: `peaks`, and in each phase `flops`, `least_bytes`, `floor_ns` and `times_floor`.
3: the case's `input_kind` (earlier always "spikes"); `inference_only` and `own_rule` in an outcome; `common-` checks.
4: `attempt` (earlier always 0); `fresh_ns`, `drawn_ns` and `repeated_ns` in each phase; `fresh-` checks, and the
compared extent in checks; `growth_bytes` of memory.
5: `side`, and `variables` in settings.
6: `probes`, and `instructions` in each phase.
"""

RECORDS, CONFIG, MACHINE, ENVIRONMENTS = "records.jsonl", "config.json", "machine.json", "environments.json"
REMEASURED_FLAGS = {"contended", DRIFTED}
"""The flags of a time that is measured again."""
FILES = (RECORDS, CONFIG, MACHINE, ENVIRONMENTS)


class RecordingError(UserError):
    """A folder is not the recording asked for, or cannot be written; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One cell. Durations are raw: the nanoseconds of a repetition cover `passes` passes.

    `attempt` is 0 for the first measurement and counts up if a disturbed cell is measured again. `side` is "base" or
    "new" in an A/B test.

    A record that is not measured has no `phases`, `memory`, `peaks`, `probes` or `wall_s`.
    """

    cell: str
    library: str
    variant: str
    trial: int
    measure: str
    case: Case
    outcome: Outcome
    attempt: int = 0
    side: str = ""
    version: str | None = None
    adapter: str = ""
    environment: str = ""
    checks: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    peaks: dict[str, Any] = field(default_factory=dict)
    probes: dict[str, Any] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    started: str = ""
    wall_s: float | None = None
    log: str = ""

    def __post_init__(self) -> None:
        held = self.phases or self.memory or self.peaks or self.probes or self.wall_s is not None
        if not self.outcome.measured and held:
            raise ValueError(f"cell {self.cell} is {self.status}, yet holds measurements")

    def encode(self) -> str:
        """As one line of JSON."""
        return json.dumps({"schema": SCHEMA, **self.as_dict()}, allow_nan=False) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """As a document."""
        return asdict(self) | {"outcome": self.outcome.as_dict()}

    @property
    def label(self) -> str:
        """`library` or `library/variant`, and the side in an A/B test."""
        name = label(self.library, self.variant)
        return f"{name} ({self.side})" if self.side else name

    @property
    def status(self) -> str:
        """measured, skipped or failed."""
        return self.outcome.status


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as read. `torn` counts lines that are not records; `environments` maps key -> package -> version.

    `records` has one record a cell, the attempt that counts; `attempts` has the other attempts of disturbed cells.
    `disproved` has the failures in DISPROVED of cells that were measured later.
    """

    folder: Path
    config: dict[str, Any]
    machine: dict[str, Any]
    records: list[Record]
    torn: int
    environments: dict[str, Any] = field(default_factory=dict)
    disproved: list[Record] = field(default_factory=list)
    attempts: list[Record] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def model(self) -> str | None:
        """The machine's model, None if it is unknown."""
        return self.machine.get("model")

    @property
    def version(self) -> str | None:
        """The version of snnbench that measured, None if it is unknown."""
        return self.config.get("snnbench")

    @property
    def resolved(self) -> dict[str, Any]:
        """The resolved config, {} if it is unknown."""
        return self.config.get("config", {})  # type: ignore[no-any-return]

    @property
    def protocol(self) -> dict[str, Any]:
        """The protocol of the config, {} if it is unknown."""
        return self.resolved.get("protocol", {})  # type: ignore[no-any-return]

    @property
    def baseline(self) -> str:
        """The contender that others are divided by; "" if the config names none."""
        return str(self.config.get("baseline", ""))

    @property
    def sides(self) -> dict[str, list[str]]:
        """The changes of each side of an A/B test; {} in other recordings."""
        return self.config.get("sides", {})  # type: ignore[no-any-return]

    @property
    def finished(self) -> bool:
        """Whether every planned cell was measured."""
        return bool(self.config.get("finished"))

    @property
    def planned(self) -> int | None:
        """The number of planned cells, None if it is unknown."""
        return self.config.get("planned")


def read(folder: Path) -> Recording:
    """The recording in `folder`, also while it is written. If an attempt has two records, the later one counts.

    Only records of a contender's latest adapter file and environment count: earlier measurements are stale.
    """
    if not (folder / RECORDS).is_file():
        raise RecordingError(f"{folder}: no recording here (no {RECORDS})")
    by_cell: dict[str, dict[int, Record]] = {}
    latest: dict[tuple[str, str, str], tuple[str, str]] = {}
    failures: dict[tuple[str, int], Record] = {}
    torn = 0
    with _uncollected():
        for line in (folder / RECORDS).read_text(encoding="utf-8", errors="replace").split("\n"):
            record = parse(line, folder)
            if record is None:
                torn += bool(line.strip())
            else:
                by_cell.setdefault(record.cell, {})[record.attempt] = record
                if record.outcome.disproved:
                    failures[record.cell, record.attempt] = record
                latest[record.library, record.variant, record.side] = (record.adapter, record.environment)
    levels = drift.relative(attempt_records for tried in by_cell.values() for attempt_records in tried.values())
    records, attempts = [], []
    for tried in by_cell.values():
        for number, attempt_records in tried.items():
            level = levels.get((attempt_records.cell, number))
            tried[number] = flagged(attempt_records, level is not None and level.drifted)
        counting = chosen(list(tried.values()))
        if (counting.adapter, counting.environment) == latest[counting.library, counting.variant, counting.side]:
            records.append(counting)
            attempts += [tried[number] for number in sorted(tried) if tried[number] is not counting]
    disproved = [
        failures[attempt_records.cell, attempt_records.attempt]
        for attempt_records in [*records, *attempts]
        if attempt_records.status == "measured" and (attempt_records.cell, attempt_records.attempt) in failures
    ]
    config, machine, environments = (document(folder / name) for name in (CONFIG, MACHINE, ENVIRONMENTS))
    return Recording(folder, config, machine, records, torn, environments, disproved, attempts)


def flagged(record: Record, drifted: bool) -> Record:
    """The record with or without the drift flag. Only the whole recording decides it, not the record's line."""
    if drifted == (DRIFTED in record.flags):
        return record
    return replace(record, flags=[*(flag for flag in record.flags if flag != DRIFTED), *([DRIFTED] if drifted else [])])


def chosen(attempts: Sequence[Record]) -> Record:
    """The attempt of a cell that counts: the least disturbed measured attempt; among equals, the later one.

    Disturbance is the number of reasons (contended, drifted), then the CPUs that others took. Contention comes from the
    record's raw numbers, for its flag may be missing.

    If an attempt disproved the work (DISPROVED), it counts before all measured ones. If no attempt was measured, the
    latest counts.
    """
    if disproved := [record for record in attempts if record.outcome.disproved]:
        return max(disproved, key=lambda record: record.attempt)
    measured = [record for record in attempts if record.status == "measured"]

    def disturbance(record: Record) -> tuple[int, float, int]:
        taken = others_cpus(record.phases)
        return (taken > CONTENDED_CPUS) + (DRIFTED in record.flags), taken, -record.attempt

    return min(measured or attempts, key=disturbance)


def repeated(outcome: Outcome, retry: Collection[str] = ()) -> bool:
    """Whether the next run repeats the cell: its end was not its own fault, or its kind is in `retry`.

    Not its own fault are an interrupt, and the loss of its node if a scheduler reported it.
    """
    kind = outcome.kind
    return kind == "cancelled" or (kind == "lost" and outcome.scheduler is not None) or kind in retry


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection of cycles: parsed records have none, and it took two thirds of reading 10,000."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def parse(line: str, folder: Path) -> Record | None:
    """The record in a line, or None if the line is malformed. Raises RecordingError if its schema is newer."""
    try:
        document = _loaded(line)
        if isinstance(document, dict) and type(document.get("schema")) is int and document["schema"] > SCHEMA:
            raise RecordingError(f"{folder}: written by a newer snnbench (schema above {SCHEMA}); install that one")
        if document["schema"] < 3:
            document["case"]["input_kind"] = "spikes"
        if schema.complaint("record", document):
            return None
        fields = {name: value for name, value in document.items() if name != "schema"}
        return Record(**fields | {"case": Case(**fields["case"]), "outcome": decode(fields["outcome"])})
    except RecordingError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _loaded(text: str) -> Any:
    """The JSON document, without control characters for a terminal. NaN and infinities raise ValueError."""
    document = json.loads(text, parse_constant=_no_number)
    escaped = "\\u" in text or not text.isascii()
    return printable.cleaned(document) if escaped else document


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def document(path: Path) -> dict[str, Any]:
    """A document of a recording; {} if the file is missing. Raises RecordingError."""
    try:
        content = _loaded(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise RecordingError(f"{path}: expected a JSON object")
    if complaint := schema.complaint(path.stem, content):
        raise RecordingError(f"{path}: {complaint}")
    return content


def recorded(record: Record) -> Cell:
    """The cell of a record."""
    return Cell(record.case, record.library, record.variant, record.trial, record.measure, record.side)  # type: ignore[arg-type]
