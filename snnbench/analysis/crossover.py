"""The size from which a GPU pays: where the time of a library's fastest contender there falls below that on the CPU.

Time is a power of the size between two measured sizes, so the crossing is read off a straight line on a logarithmic
scale. Only exact and equivalent contenders count, and only sizes that both kinds of device have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

from snnbench.analysis.results import Result
from snnbench.cases.case import Case

KINDS = ("cpu", "cuda")
BySize = dict[int, tuple[float, str]]
"""Size -> (time [ns], contender)."""


@dataclass(frozen=True, slots=True)
class Crossover:
    """A library's fastest contenders on both kinds of device: `ratios` are GPU time over CPU time, by size, rising.

    `case` has all fields but the size and the device. `cpu` and `cuda` are the contenders at the largest size.
    """

    case: Case
    axis: str
    library: str
    cpu: str
    cuda: str
    ratios: tuple[tuple[int, float], ...]

    @property
    def pays_from(self) -> float | None:
        """The size from which the GPU is faster at every larger size that was measured.

        It is the smallest size if the GPU is always faster, and None if the CPU is faster at the largest size.
        """
        if self.ratios[-1][1] >= 1:
            return None
        for (small, slower), (large, faster) in reversed(list(pairwise(self.ratios))):
            if slower >= 1:
                share = log(slower) / (log(slower) - log(faster))
                return exp(log(small) + share * (log(large) - log(small)))
        return float(self.ratios[0][0])

    @property
    def is_bracketed(self) -> bool:
        """Whether the CPU is faster at a measured size, so that the crossing lies between two sizes."""
        return self.pays_from is not None and any(ratio >= 1 for _, ratio in self.ratios)


def crossovers(results: Mapping[Case, Sequence[Result]], phase: str) -> list[Crossover]:
    """The crossover of each library with times on both kinds of device, at two sizes or more of the main axis."""
    by_work: dict[Case, dict[str, dict[str, BySize]]] = {}
    for case, listed in results.items():
        axis = next(iter(case.SIZES))
        of_work = by_work.setdefault(case.with_(device="cpu", threads=0, **{axis: 0}), {})
        for result in listed:
            summary = result.summaries.get((phase, "time"))
            if summary and result.verdict != "deviates" and not result.failure:
                kinds = of_work.setdefault(result.contender.partition("/")[0], {kind: {} for kind in KINDS})
                by_size, size = kinds[case.device.partition(":")[0]], getattr(case, axis)
                timed = summary.median, result.contender
                by_size[size] = min(timed, by_size.get(size, timed))
    return [
        crossover
        for case, of_work in by_work.items()
        for library, kinds in of_work.items()
        if (crossover := _crossover(case, library, *kinds.values()))
    ]


def _crossover(case: Case, library: str, on_cpu: BySize, on_cuda: BySize) -> Crossover | None:
    sizes = sorted(on_cpu.keys() & on_cuda.keys())
    if len(sizes) < 2:
        return None
    ratios = tuple((size, on_cuda[size][0] / on_cpu[size][0]) for size in sizes)
    return Crossover(case, next(iter(case.SIZES)), library, on_cpu[sizes[-1]][1], on_cuda[sizes[-1]][1], ratios)
