"""A replay: a cell measured again by this installation, and whether the new interval overlaps the recorded one.

No code of a recording is run: the adapter and its pins are those of this installation. If they differ from the recorded
ones, the replay says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from snnbench.adapter.contender import label
from snnbench.adapter.declaration import Adapter
from snnbench.analysis.bootstrap import Interval, bootstrap
from snnbench.analysis.metrics import metrics
from snnbench.plan.cell import Cell
from snnbench.plan.config import Protocol
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record, RecordingError, recorded
from snnbench.run.setup import Run
from snnbench.units import MIB, MS
from snnbench.worker.durations import pass_ns

SEED = 0
"""Seed of the bootstrap, so that the same two sets of trials give the same intervals."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A number of one phase, recorded and new: time in ns, or memory in bytes, and the intervals of both."""

    phase: str
    metric: str
    old: Interval
    new: Interval

    @property
    def overlaps(self) -> bool:
        """Whether the intervals share a value."""
        return self.old.low <= self.new.high and self.new.low <= self.old.high


def changes(record: Record, recording: Recording, adapter: Adapter, here: Run) -> Iterator[str]:
    """Changes since the cell was recorded: machine, adapter file, environment."""
    interpreter = here.setups[record.side].interpreter((record.library, record.variant), record.case)
    if recording.model != here.machine:
        yield f"the machine: {recording.model} then, {here.machine} now"
    if record.adapter != adapter.digest:
        yield f"the adapter file: {record.adapter} then, {adapter.digest} now"
    if record.environment != interpreter.key:
        yield f"the environment: {record.environment} then, {interpreter.key} now"


def trials(recording: Recording, wanted: Record) -> list[Record]:
    """The measured records of the same work; the interval is made of them."""
    alike = (wanted.library, wanted.variant, wanted.case, wanted.measure, wanted.side)
    return [
        record
        for record in recording.records
        if (record.library, record.variant, record.case, record.measure, record.side) == alike
        and record.status == "measured"
    ]


def cells(record: Record, count: int) -> list[Cell]:
    """The same work in `count` new processes."""
    return [replace(recorded(record), trial=trial) for trial in range(count)]


def compared(old: Sequence[Record], new: Sequence[Record]) -> list[Replayed]:
    """Every time and size that both sets of records have."""
    before, after = _intervals(old), _intervals(new)
    return [Replayed(*key, before[key], after[key]) for key in before if key in after]


def protocol(recording: Recording) -> Protocol:
    """The protocol of the recording. Raises RecordingError if its config holds no valid one."""
    try:
        return Protocol.model_validate(recording.protocol)
    except (LookupError, TypeError, ValueError) as error:
        raise RecordingError(f"{recording.folder}: its config holds no protocol to measure by") from error


def lines(replayed: Sequence[Replayed]) -> Iterator[str]:
    """A line for each number."""
    for number in replayed:
        unit, name = (MS, "ms") if number.metric == "time" else (MIB, "MiB")
        old, new = (f"{each.low / unit:.4g} to {each.high / unit:.4g} {name}" for each in (number.old, number.new))
        word = "overlaps" if number.overlaps else "DOES NOT OVERLAP"
        yield f"{number.phase} {number.metric.replace('_', ' ')}: {new} now, {word} {old} then"


def _intervals(records: Sequence[Record]) -> dict[tuple[str, str], Interval]:
    """Intervals by phase and metric: of times by the bootstrap over trials and repetitions, of sizes the range."""
    groups: dict[str, list[list[float]]] = {}
    sizes: dict[tuple[str, str], list[float]] = {}
    for record in records:
        for phase, timing in record.phases.items():
            groups.setdefault(phase, []).append(pass_ns(timing))
        for phase, metric, unit, value in metrics(record):
            if unit == "bytes":
                sizes.setdefault((phase, metric), []).append(value)
    times = zip(groups, bootstrap(list(groups.values()), SEED), strict=True)
    intervals = {(phase, "time"): interval for phase, interval in times}
    return intervals | {key: Interval(min(each), max(each)) for key, each in sizes.items()}


def heading(record: Record, count: int) -> str:
    """The line printed before a replay."""
    return f"measuring {label(record.library, record.variant)} again, {count} trials"
