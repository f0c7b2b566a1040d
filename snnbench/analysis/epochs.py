"""Epochs: the bound of an epoch, and the strategies of one contender beside each other.

A loader in processes of its own works while the network computes. So an epoch takes at least the longer of both, and
with perfect overlap no more. A loader in the loop's process takes turns with the network, and the epoch is their sum.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.recording.record import Record

EPOCH, COMPUTE, LOADER = "epoch", "compute", "loader"
BOTH = "both"
STRATEGY, WORKERS = "strategy", "workers"
BALANCED = 0.1
"""Two durations that differ by a smaller share bound an epoch together."""
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Epoch:
    """The median times of one contender in one case, in ns: the epoch, the network alone, the loader alone.

    `parts_ns` are those of the epoch; those of the loader's other processes are in `loader_ns`. `loss` and `accuracy`
    are those of the last epoch.
    """

    case: Case
    contender: str
    epoch_ns: float
    compute_ns: float
    alone_ns: float
    parts_ns: Mapping[str, float]
    loader_ns: Mapping[str, float]
    loss: float
    accuracy: float

    @property
    def strategy(self) -> str:
        """Where the samples come from."""
        return str(getattr(self.case, STRATEGY))

    @property
    def workers(self) -> int:
        """The number of other processes that load."""
        return int(getattr(self.case, WORKERS))

    @property
    def longer_ns(self) -> float:
        """max(loader, compute): the epoch with perfect overlap."""
        return max(self.alone_ns, self.compute_ns)

    @property
    def expected_ns(self) -> float:
        """The longer of both if other processes load, else their sum."""
        return self.longer_ns if self.workers else self.alone_ns + self.compute_ns

    @property
    def samples_per_s(self) -> float:
        """Samples that the epoch processes in a second."""
        return self.case.samples_in_pass / (self.epoch_ns / 1e9)

    @property
    def bound(self) -> str:
        """The part that takes longer by itself: LOADER, COMPUTE, or BOTH if they are about equal."""
        if abs(self.alone_ns - self.compute_ns) < BALANCED * self.longer_ns:
            return BOTH
        return LOADER if self.alone_ns > self.compute_ns else COMPUTE


def epochs(by_case: Mapping[Case, Iterable[Result]]) -> dict[Key, list[Epoch]]:
    """The epochs of contenders with a time of all three phases, in groups that differ in strategy and workers only."""
    groups: dict[Key, list[Epoch]] = {}
    for case, results in by_case.items():
        for result in results if case.is_fed else ():
            if epoch := _epoch(case, result):
                groups.setdefault(without_strategy(case), []).append(epoch)
    return groups


def like_strategies(records: Iterable[Record]) -> dict[Key, list[Record]]:
    """Measured records of epochs that differ in strategy, workers and trial only, by contender and the other fields."""
    groups: dict[Key, list[Record]] = {}
    for record in records:
        if record.case.is_fed and record.status == "measured" and record.phases:
            groups.setdefault((record.label, without_strategy(record.case)), []).append(record)
    return groups


def without_strategy(case: Case) -> Key:
    """The fields of a case that decide what is learned."""
    return tuple((name, value) for name, value in case.as_dict().items() if name not in (STRATEGY, WORKERS))


def _epoch(case: Case, result: Result) -> Epoch | None:
    """The epochs of a contender in a case, or None if a phase has no time."""
    times = {phase: result.summaries.get((phase, "time")) for phase in (EPOCH, COMPUTE, LOADER)}
    medians = {phase: time.median for phase, time in times.items() if time}
    if len(medians) < len(times):
        return None
    numbers = {metric: summary.median for (phase, metric), summary in result.summaries.items() if phase == EPOCH}
    return Epoch(
        case,
        result.contender,
        epoch_ns=medians[EPOCH],
        compute_ns=medians[COMPUTE],
        alone_ns=medians[LOADER],
        parts_ns=_beginning(numbers, "part_"),
        loader_ns=_beginning(numbers, "loader_"),
        loss=numbers["loss"],
        accuracy=numbers["accuracy"],
    )


def _beginning(numbers: Mapping[str, float], start: str) -> dict[str, float]:
    """The numbers whose names begin with `start`, by the rest of the name."""
    return {name.removeprefix(start): value for name, value in numbers.items() if name.startswith(start)}
