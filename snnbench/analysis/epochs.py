"""Epochs: what bounds an epoch, and the strategies of one contender beside each other.

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
STRATEGY, WORKERS = "strategy", "workers"
BALANCED = 0.1
"""Two durations that differ by a smaller share bound an epoch together."""
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """The loader alone, the network alone, and the epoch, in ns, of one contender in one case."""

    case: Case
    contender: str
    epoch_ns: float
    compute_ns: float
    loader_ns: float

    @property
    def in_process(self) -> bool:
        """Whether the loop's own process loads."""
        return bool(getattr(self.case, WORKERS) == 0)

    @property
    def least_ns(self) -> float:
        """max(loader, compute): the epoch with perfect overlap."""
        return max(self.loader_ns, self.compute_ns)

    @property
    def samples_per_s(self) -> float:
        """Samples that the epoch processes in a second."""
        return self.case.samples_in_pass / (self.epoch_ns / 1e9)

    @property
    def of(self) -> str:
        """The part that bounds the epoch: "loader", "compute", or "both"."""
        if abs(self.loader_ns - self.compute_ns) < BALANCED * self.least_ns:
            return "both"
        return LOADER if self.loader_ns > self.compute_ns else COMPUTE


def bounds(by_case: Mapping[Case, Iterable[Result]]) -> list[Bound]:
    """The bound of each contender with a time of all three phases, in the order of the cases."""
    listed = []
    for case, results in by_case.items():
        for result in results:
            times = [result.summaries.get((phase, "time")) for phase in (EPOCH, COMPUTE, LOADER)]
            if case.is_fed and all(times):
                listed.append(Bound(case, result.contender, *(time.median for time in times if time)))
    return listed


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
