"""Fresh passes: timed passes on content that no pass of the process has seen.

A kept answer is right, and fast, as long as content repeats. So a phase also runs on new content:

* Content drawn anew: every sample is new. A part of the answer is compared with the reference.
* The input and the cotangent of the problem, with the samples of the batch in another order. The right answer is known:
  spikes and input gradients take that order, and gradients of weights and biases stay. A library may keep the answer of
  each sample, so such a pass says nothing of the time.

Passes on drawn content must take as long as the repetitions whose time is reported (`are_slow`). If most repetitions
are such passes themselves, their median is no shorter than the fastest of them, and no further pass is needed
(`are_enough`). Short passes run in series, because a single one finds sleeping threads and cold caches. If all series
are slow, further series run, on drawn and on repeated content in turn, until one on drawn content is fast enough. If
drawn passes take much longer in a test of all pairs (`are_kept`), answers are kept. If not, something else slows new
content down, and the time of the drawn passes is reported: no repeated pass can clear a library.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.answer import Answer, Held
from snnbench.cases.problem import Problem
from snnbench.proof.comparison import Finding, compare_gradient

ORDERED = 3
"""Passes on content in another order."""
DRAWN = 3
"""Series of passes on content drawn anew, or single ones, of which the fastest counts."""
SERIES_NS = 1_000_000
"""Passes that take less run in series of LONGEST_SERIES."""
LONGEST_SERIES = 10
SECOND_SERIES = 5
"""Longer passes run in such series if single ones are slow, and repetitions are several passes in a row."""
HALF = 15
PAIRS = 2 * HALF
"""The test decides after half of the pairs, or else after all of them."""
LOOKED_AT = 5
"""From so many pairs on, the test ends as soon as drawn passes take no longer on average."""
CHANCE = 0.001
"""The false positive rate of the test, at most, if no answer is kept."""
CHANCE_OF_EACH = CHANCE / 2
"""That of each of its two decisions."""
SLACK_NS = 100_000
"""Time allowed to a single pass for a waking thread and a cold cache."""
SLACK_IN_A_ROW_NS = 25_000
"""The same for a pass of a series: only its content is new to the caches."""
FEWEST_ORDERS = 100
"""If a batch has fewer orders, an order would soon repeat, so its content is always drawn anew."""
LARGEST_ORDERED = 10
MARGIN = 0.2
"""Share of a reported pass by which a drawn pass may be slower: branch prediction is worse on new content."""
KEPT_MARGIN = 0.5
"""The share from which answers are kept. Honest passes on drawn content took up to 1.21 times as long as others."""

Order = NDArray[np.intp]
Pair = tuple[float, float]
"""Nanoseconds of a pass on drawn content, and of a pass on repeated content beside it."""


@dataclass(frozen=True, slots=True)
class Content:
    """The number of an input and cotangent; `order` is its order of the samples of content 0, None if drawn anew."""

    number: int
    order: Order | None


@dataclass(slots=True)
class Contents:
    """Content that this process has not seen. `first` is the number of the first content drawn anew.

    `first` and `seed` are secrets of the process, so that no library can know content before it comes.
    """

    problem: Problem
    seed: int
    first: int
    _orders: set[tuple[int, ...]] = field(default_factory=set)
    _given: int = 0
    _present: list[int] = field(default_factory=list)

    def next(self, drawn: int) -> list[Content]:
        """So many contents drawn anew, or with 0 one in another order of the samples, or drawn if orders are too few.

        They replace those of the last call.
        """
        batch = self.problem.case.batch
        for number in self._present:
            self.problem.forget(number)
        count = max(1, drawn)
        self._present = [self.first + self._given + number for number in range(count)]
        self._given += count
        if drawn or math.factorial(min(batch, LARGEST_ORDERED)) < FEWEST_ORDERS:
            return [Content(number, None) for number in self._present]
        (number,) = self._present
        self._orders.add(tuple(range(batch)))
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, number])))
        order = generator.permutation(batch)
        while tuple(order.tolist()) in self._orders:
            order = generator.permutation(batch)
        self._orders.add(tuple(order.tolist()))
        self.problem.arrange(number, order)
        return [Content(number, order)]


def in_first_order(answer: Answer, order: Order) -> Answer:
    """The answer to content in this order, as the answer to content 0."""
    back = np.argsort(order)

    def sorted_back(array: Any) -> Any:
        if array is None or len(array.shape) != 3 or array.shape[1] != len(order):
            return array
        return array.in_order(back) if isinstance(array, Held) else array[:, back]

    return replace(answer, spikes=sorted_back(answer.spikes), input=sorted_back(answer.input))


Memory = dict[tuple[str, int], Any]
"""The arrays of a copy, by the name of the output and the number of the layer."""


def copied(answer: Answer, memory: Memory | None = None) -> Answer:
    """A copy of the answer, where it is, which unfinished work cannot change.

    It overwrites an earlier copy in the same `memory`.
    """
    arrays: Memory = {} if memory is None else memory

    def copy(name: str, source: Any, number: int = 0) -> Any:
        array = arrays.get((name, number))
        if isinstance(source, Held):
            arrays[name, number] = array = source.copied(array)
        elif array is None or (array.shape, array.dtype) != (source.shape, source.dtype):
            arrays[name, number] = array = np.array(source)
        else:
            np.copyto(array, source)
        return array

    def copies(name: str, sources: list[Any] | None) -> list[Any] | None:
        return None if sources is None else [copy(name, source, number) for number, source in enumerate(sources)]

    return Answer(
        None if answer.spikes is None else copy("spikes", answer.spikes),
        copies("weights", answer.weights),
        copies("biases", answer.biases),
        None if answer.input is None else copy("input", answer.input),
        copies("constants", answer.constants),
    )


def differing(answer: Answer, verified: Answer) -> NDArray[np.bool_] | None:
    """Where the spikes of two answers to content 0 differ; None if one has no spikes or their shapes differ."""
    if answer.spikes is None or verified.spikes is None or answer.spikes.shape != verified.spikes.shape:
        return None
    differs: NDArray[np.bool_] = answer.spikes != verified.spikes
    return differs


def compare_gradients(finding: Finding, answer: Answer, verified: Answer, tolerance: float) -> None:
    """Compare the gradients of two answers with the same spikes, and complain.

    Both are within `tolerance` of the reference, so they may be twice that apart. Raises ValueError without spikes.
    """
    if answer.spikes is None or verified.spikes is None:
        raise ValueError("gradients belong to spikes")
    finding.compared += answer.spikes.size
    finding.rate = verified.spikes.mean(dtype=np.float64).item()
    for name in ("weights", "biases"):
        ours, theirs = getattr(answer, name), getattr(verified, name)
        if theirs is not None:
            for number, expected in enumerate(theirs):
                got = ours[number] if ours is not None and number < len(ours) else None
                label = {"weights": "weight", "biases": "bias"}[name] + (f" of layer {number}" if number else "")
                _compare_gradient(finding, label, got, np.asarray(expected), 2 * tolerance)
    for number, expected in enumerate(verified.constants or []):
        got = answer.constant(number)
        _compare_gradient(finding, f"trained constant {number}", got, np.asarray(expected), 2 * tolerance)
    if verified.input is not None:
        _compare_gradient(finding, "input", answer.input, verified.input, 2 * tolerance)


def _compare_gradient(
    finding: Finding, name: str, got: NDArray[np.generic] | None, expected: NDArray[np.generic], tolerance: float
) -> None:
    """Compare a gradient with a verified one. Most are bitwise equal, and that test is much faster."""
    if got is not None and np.array_equal(got, expected):
        finding.gradient_errors.setdefault(name, 0.0)
        finding.cosines.setdefault(name, 1.0)
        return
    compare_gradient(finding, name, got, expected, tolerance)


def series_of(pass_ns: float, passes: int) -> int:
    """Passes on drawn content in a row, for repetitions of `passes` passes of so many nanoseconds."""
    return min(passes, LONGEST_SERIES) if pass_ns < SERIES_NS else 1


def waking(series: int) -> int:
    """The first passes of a series, which do not count: they wake threads, and meet cold caches."""
    return series // 3


def of_series(passes_ns: Sequence[float]) -> float:
    """The time of a pass in a series: the second longest of four to seven that count.

    One answer of those is compared. A library that answers all but the longest with anything is found in three of four
    such series, or more.
    """
    return sorted(passes_ns)[-1 - len(passes_ns) // 4]


def are_enough(drawn: int, repetitions: int, passes: int) -> bool:
    """Whether so many passes on drawn content can show that the time of so many repetitions is not of kept answers."""
    return drawn >= DRAWN or (passes == 1 and 2 * drawn > repetitions)


def are_slow(drawn_ns: Sequence[float], reported_ns: float, series: int, synchronisation_ns: float) -> bool:
    """Whether a pass of even the fastest series takes longer than the reported time allows.

    Chance cannot make a drawn pass faster, so if answers are kept, the fastest series is slow, too.
    """
    slack_ns = SLACK_IN_A_ROW_NS if series > 1 else SLACK_NS
    allowed_ns = reported_ns * (1 + MARGIN) + synchronisation_ns + slack_ns
    return min(drawn_ns) > allowed_ns


def undecided(pairs: Sequence[Pair]) -> bool:
    """Whether another pair is needed: there are few so far, or drawn passes may take longer on average."""
    if len(pairs) < LOOKED_AT:
        return True
    return len(pairs) < PAIRS and float(_excess(pairs).mean()) > 0 and not are_kept(pairs)


def are_kept(pairs: Sequence[Pair]) -> bool:
    """Whether drawn passes take longer than repeated passes: a sign-flip test of the mean of half or all pairs.

    If no answer is kept, a disturbance meets both passes of a pair equally often, so both signs of a pair are equally
    likely. The mean must be among the largest CHANCE_OF_EACH of the means over all signs.
    """
    if len(pairs) not in (HALF, PAIRS):
        return False
    excess = _excess(pairs)
    if excess.sum() <= 0:
        return False
    sums = np.sort(_signs() @ excess[:HALF])
    further = _signs() @ excess[HALF:] if len(pairs) > HALF else np.zeros(1)
    as_large = len(sums) - np.searchsorted(sums, excess.sum() - 1e-9 - further)
    return bool(as_large.sum() <= CHANCE_OF_EACH * len(sums) * len(further))


@cache
def _signs() -> NDArray[np.float64]:
    """All signs of half of the pairs, one combination a row."""
    return np.array(1 - 2 * (np.arange(1 << HALF)[:, None] >> np.arange(HALF) & 1), np.float64)


def slowdown(pairs: Sequence[Pair]) -> float:
    """Median ratio of a pass on drawn content to a pass on repeated content."""
    return median(drawn_ns / repeated_ns for drawn_ns, repeated_ns in pairs)


def _excess(pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """By how much each drawn pass exceeds the time that its repeated pass allows, as a logarithm."""
    return np.array(
        [math.log(max(1, drawn_ns - SLACK_NS) / (repeated_ns * (1 + KEPT_MARGIN))) for drawn_ns, repeated_ns in pairs]
    )
