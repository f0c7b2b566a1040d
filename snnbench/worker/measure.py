"""The worker's half of a measure: it measures before, between and after the phases that a process times."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from snnbench import measures
from snnbench.adapter.declaration import Variant
from snnbench.backends import Backend, Build, Session
from snnbench.cases.problem import Problem
from snnbench.worker import timing
from snnbench.worker.messages import Request


@dataclass(frozen=True, slots=True)
class Work:
    """What a process measures, and on what.

    `settle()` waits until the CPU idles after work. A card is busy for `busy_ns` before anything on it is timed.
    """

    request: Request
    backend: Backend
    build: Build
    variant: Variant
    problem: Problem
    session: Session
    settle: Callable[[], None]
    busy_ns: int = 0


@dataclass(frozen=True, slots=True)
class Timed:
    """A phase that was timed: how to run it, its durations, and how long a card is kept busy before more passes.

    With `takes_turns` another process measures the same phase now.
    """

    name: str
    phase: timing.Phase
    timing: timing.Timing
    busy_ns: int
    takes_turns: bool


class Measure:
    """One measure in one process; every step does nothing by default. A failure must not take the times away.

    With `IS_ALWAYS` no protocol asks for it.
    """

    IS_ALWAYS = False

    def __init__(self, work: Work) -> None:
        self.work = work

    def begin(self) -> None:
        """Measure before the first phase."""

    def after(self, timed: Timed) -> dict[str, Any]:
        """Measure after a phase. Returns keys of the phase in the record."""
        return {}

    def end(self) -> None:
        """Measure after the last phase."""

    def settings(self, phases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Settings of the record, given its phases: why something was not measured, for example."""
        return {}

    def of_record(self) -> dict[str, Any]:
        """Parts of the record by the name of a field of Reply."""
        return {}


class OwnCell:
    """A measure with cells of its own, in which nothing is timed. Its part of a record has the measure's name."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def before_build(self) -> None:
        """Measure before the network is built, after the exam."""

    def after_build(self) -> None:
        """Measure as soon as it is built."""

    def measure(self, session: Session, phase: str) -> tuple[Any, Any]:
        """Measure `train` or `inference` passes. Returns the spikes and gradients of the first."""
        raise NotImplementedError

    def complaint(self) -> str | None:
        """Why the numbers are not those of the work, in one line; None if they are."""
        return None

    def of_record(self) -> dict[str, Any]:
        """The measure's part of the record."""
        return {}


def of(work: Work) -> list[Measure]:
    """The measures of a process that times: those that are always done, and those that the request asks for."""
    each = {name: half.MEASURE for name, half in measures.workers().items() if issubclass(half.MEASURE, Measure)}
    return [measure(work) for name, measure in each.items() if measure.IS_ALWAYS or name in work.request.further]


def own(kind: str, backend: Backend) -> OwnCell:
    """The measure of a cell of its own kind."""
    measure: OwnCell = measures.workers()[kind].MEASURE(backend)
    return measure
