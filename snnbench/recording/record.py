"""A record: what became of one cell, as one line of JSON."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from snnbench import printable, workloads
from snnbench.adapter.contender import label
from snnbench.cases.case import Case
from snnbench.cases.outcome import Outcome, decode
from snnbench.exits import UserError
from snnbench.plan.cell import Cell
from snnbench.recording import schema, upgrades
from snnbench.worker.messages import no_number

SCHEMA = 8
"""Additions by schema. 1: first version.
2: `peaks`, and in each phase `flops`, `least_bytes`, `floor_ns` and `times_floor`.
3: the case's `input_kind` (earlier always "spikes"); `inference_only` and `own_rule` in an outcome; `common-` checks.
4: `attempt` (earlier always 0); `fresh_ns`, `drawn_ns` and `repeated_ns` in each phase; `fresh-` checks, and the
compared extent in checks; `growth_bytes` of memory.
5: `side`, and `variables` in settings.
6: `probes`, and `instructions` in each phase.
7: cases of other workloads than linear_lif; stacks of three layers and more are proved layer by layer in float32, too.
8: three passes on drawn content in each phase; `contested_ns`, `contested_passes`, `build_ns` and `timed_cpus` there;
`passes_ns` and `build_bytes` of memory; `first_content` in settings; `enough_ns` in each phase; `rates` in checks.
"""


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


def repeated(outcome: Outcome, retry: Collection[str] = ()) -> bool:
    """Whether the next run repeats the cell: its end was not its own fault, or its kind is in `retry`.

    Not its own fault are an interrupt, and the loss of its node if a scheduler reported it.
    """
    kind = outcome.kind
    return kind == "cancelled" or (kind == "lost" and outcome.scheduler is not None) or kind in retry


def parse(line: str, folder: Path) -> Record | None:
    """The record in a line, or None if the line is malformed. Raises RecordingError if its schema is newer."""
    try:
        document = loaded(line)
        if isinstance(document, dict) and type(document.get("schema")) is int and document["schema"] > SCHEMA:
            raise RecordingError(f"{folder}: written by a newer snnbench (schema above {SCHEMA}); install that one")
        upgrades.record(document)
        if schema.complaint("record", document):
            return None
        fields = {name: value for name, value in document.items() if name != "schema"}
        return Record(**fields | {"case": workloads.decode(fields["case"]), "outcome": decode(fields["outcome"])})
    except RecordingError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def readable_line(record: Record, folder: Path) -> str:
    """The record as a line. Raises RecordingError if a reader would refuse it, and its cell be lost without a word."""
    line = record.encode()
    if parse(line, folder) is None:
        wrong = schema.complaint("record", loaded(line)) or "it is no record"
        raise RecordingError(f"{folder}: cannot hold {record.label}, {record.measure} {record.trial}: {wrong}")
    return line


def loaded(text: str) -> Any:
    """The JSON document in `text`, without control characters for a terminal. NaN and infinities raise ValueError."""
    document = json.loads(text, parse_constant=no_number)
    escaped = "\\u" in text or not text.isascii()
    return printable.cleaned(document) if escaped else document


def recorded(record: Record) -> Cell:
    """The cell of a record."""
    return Cell(record.case, record.library, record.variant, record.trial, record.measure, record.side)  # type: ignore[arg-type]
