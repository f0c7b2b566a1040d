"""The wire between harness and worker: a request is one JSON document, a reply is one line of JSON.

A reply ends with a newline. Without it the reply is incomplete and the cell is `lost`. Before it lines of notes may
come: the progress of long work that is not timed.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from snnbench import workloads
from snnbench.cases import outcome
from snnbench.cases.case import Case
from snnbench.cases.outcome import Outcome

PROTOCOL = 1
"""1: first version."""

Measure = Literal["time", "memory", "verify", "import", "export"]
"""What a cell is for. The last three time nothing; `import` and `export` are those of a library for NIR graphs."""
EXCHANGES: tuple[Measure, ...] = ("import", "export")


class BadRequest(ValueError):
    """The input is not a request; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A task for a worker: one measurement of one variant of one adapter.

    `phases` are timed in this order, and `further` are the measures that the protocol asks for. Memory takes `train` if
    any phase is not `inference`, else `inference`. Lengths are in nanoseconds. A pass that takes longer than
    `enough_ns`, if it is not 0, is too slow to matter and is measured only once. `patience_s` is how long a worker
    waits for the worker that takes turns with it. The worker applies `memory_limit_bytes` and `cpus` to itself before
    it imports anything else.
    """

    measure: Measure
    case: Case
    variant: str
    phases: tuple[str, ...] = ()
    warmup_passes: int = 3
    repetitions: int = 10
    min_repetition_ns: int = 10_000_000
    max_phase_ns: int = 5_000_000_000
    enough_ns: int = 0
    check_ns: int = 2_000_000_000
    further: tuple[str, ...] = ()
    patience_s: float = 0.0
    memory_limit_bytes: int | None = None
    cpus: tuple[int, ...] = ()

    def encode(self) -> str:
        """As one JSON document."""
        return json.dumps({"protocol": PROTOCOL, **asdict(self)}, indent=2) + "\n"


@dataclass(slots=True)
class Reply:
    """The answer of a worker. `outcome` is None until it is decided, and in a reply that has no valid one."""

    outcome: Outcome | None = None
    checks: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, Any] = field(default_factory=dict)
    peaks: dict[str, Any] = field(default_factory=dict)
    probes: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """As one line."""
        return json.dumps({"protocol": PROTOCOL, **self.as_dict()}, allow_nan=False).encode() + b"\n"

    def as_dict(self) -> dict[str, Any]:
        """As a document."""
        return asdict(self) | {"outcome": self.outcome.as_dict() if self.outcome else {}}


@dataclass(frozen=True, slots=True)
class Note:
    """The progress of long work that is not timed: `done` parts of `count`."""

    doing: str
    done: int
    count: int

    def encode(self) -> bytes:
        """As one line."""
        return NOTE + json.dumps([self.doing, self.done, self.count]).encode() + b"\n"


NOTE = b"note "
"""The beginning of a note's line."""
Announce = Callable[[Note], None]


def silent(note: Note) -> None:
    """Announce nothing."""


def split_notes(data: bytes) -> tuple[list[Note], bytes]:
    """The whole notes at the beginning of what a worker has written, and the rest."""
    notes: list[Note] = []
    while data.startswith(NOTE) and b"\n" in data:
        line, _, data = data.partition(b"\n")
        try:
            doing, done, count = json.loads(line.removeprefix(NOTE))
            notes.append(Note(str(doing), int(done), int(count)))
        except (TypeError, ValueError, RecursionError):
            continue  # an adapter shares the worker's process and can spoil it
    return notes, data


def decode_request(text: str) -> Request:
    """The request in `text`. Raises BadRequest."""
    try:
        fields = json.loads(text)
        if fields.pop("protocol", None) != PROTOCOL:
            raise BadRequest(f"request: protocol {PROTOCOL} expected")
        fields["case"] = workloads.decode(fields["case"])
        for name in ("phases", "further", "cpus"):
            fields[name] = tuple(fields.get(name, ()))
        return Request(**fields)
    except (TypeError, KeyError, AttributeError, RecursionError, json.JSONDecodeError) as error:
        raise BadRequest(" ".join(f"request: {error}".split())) from error


def decode_reply(data: bytes) -> Reply | None:
    """The reply in `data`, or None if it is incomplete."""
    if not data.endswith(b"\n"):
        return None
    try:
        fields = json.loads(data, parse_constant=no_number)
        del fields["protocol"]
        if not all(isinstance(value, dict) for value in fields.values()):
            return None
        return Reply(**fields | {"outcome": _outcome(fields["outcome"])})
    except (TypeError, KeyError, ValueError, RecursionError):
        return None


def _outcome(document: dict[str, Any]) -> Outcome | None:
    """The outcome in a reply, or None if it is invalid: an adapter shares the worker's process and can spoil it."""
    try:
        decoded = outcome.decode(document)
    except ValueError:
        return None
    return None if decoded.complaint() else decoded


def no_number(constant: str) -> None:
    """Refuse NaN and infinities in JSON. Raises ValueError."""
    raise ValueError(f"{constant} is no number")
