"""A replay: a cell measured again by this installation, and whether the new numbers agree with the recorded ones.

The baseline's cells of the same case take turns with it. Their ratio says more than the times, for it does not depend
on the speed of the machine.

No code of a recording is run: the adapter and its pins are those of this installation. If they differ from the recorded
ones, the replay says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from snnbench.adapter.declaration import Adapter
from snnbench.analysis.bootstrap import Interval, bootstrap
from snnbench.analysis.decision import decide
from snnbench.analysis.difference import differences
from snnbench.analysis.metrics import metrics
from snnbench.analysis.results import headline
from snnbench.plan.cell import Cell
from snnbench.plan.config import Protocol
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record, RecordingError, recorded
from snnbench.run.setup import RunContext
from snnbench.units import MIB, MS
from snnbench.worker.durations import pass_ns

SEED = 0
"""Seed of the bootstrap, so that the same two sets of trials give the same intervals."""
CONFIDENCE = 0.95
REPRODUCED = 0.1
"""Largest change of a ratio to the baseline that counts as reproduced: libraries differ by more than a tenth."""


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


def changes(record: Record, recording: Recording, adapter: Adapter, here: RunContext) -> Iterator[str]:
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


def beside(recording: Recording, wanted: Record, adapters: Mapping[str, Adapter]) -> tuple[list[Record], str]:
    """([a measured record of the baseline in the same case], ""), or ([], why no ratio is replayed)."""
    if wanted.measure != "time":
        return [], "only times have one"
    if wanted.label == recording.baseline:
        return [], "the cell is the baseline's own"
    there = [one for one in recording.records if one.label == recording.baseline and one.status == "measured"]
    alike = [one for one in there if (one.case, one.measure) == (wanted.case, wanted.measure)]
    if not alike:
        return [], f"the recording has no time of {recording.baseline or 'a baseline'} in this case"
    base = alike[0]
    if base.library not in adapters or base.variant not in adapters[base.library].variants:
        return [], f"{recording.baseline} is not here; --adapter FILE adds it"
    return [base], ""


def cells(records: Sequence[Record], count: int) -> list[Cell]:
    """The same works in `count` new processes each, in turns."""
    return [replace(recorded(record), trial=trial) for trial in range(count) for record in records]


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


def conclusion(old: Sequence[Record], new: Sequence[Record], old_base: Sequence[Record], base: Sequence[Record]) -> str:
    """The line of the verdict: the new ratio to the baseline over the recorded one, trial by trial."""
    phase = next(iter(headline(old)), "")
    then, now = _ratios(old, old_base, phase), _ratios(new, base, phase)
    if not then or not now:
        return f"no ratio to the baseline: no {'recorded' if not then else 'new'} trial has both times"
    (change,) = differences([(then, now)], CONFIDENCE)
    word, reason = decide(change, change.p, REPRODUCED, 1 - CONFIDENCE)
    between = f" ({change.low:.2f} to {change.high:.2f})" if change.low is not None and change.high is not None else ""
    ratio = f"{change.ratio:.2f} of the recorded ratio to {base[0].label}{between}, in {phase}"
    if word == "inconclusive":
        return f"inconclusive: {ratio}; {reason}"
    return f"{'reproduced' if word == 'same' else 'not reproduced'}: {ratio}"


def _ratios(records: Sequence[Record], base: Sequence[Record], phase: str) -> tuple[float, ...]:
    """The ratio of medians of each trial that both have."""
    times, others = (
        {one.trial: median(pass_ns(one.phases[phase])) for one in each if phase in one.phases}
        for each in (records, base)
    )
    return tuple(times[trial] / others[trial] for trial in sorted(times.keys() & others.keys()))


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


def heading(records: Sequence[Record], count: int) -> str:
    """The line printed before a replay."""
    return f"measuring {' and '.join(one.label for one in records)} again, {count} trials"
