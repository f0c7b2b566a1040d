"""Fresh passes: single timed passes on content that no pass of the process has seen.

A kept answer is right, and fast, as long as content repeats. So a phase also runs on new content:

* The input and the cotangent of the problem, with the samples of the batch in another order. The right answer is known:
  spikes and input gradients take that order, and gradients of weights and biases stay.
* Content drawn anew: every sample is new. A part of its answer is compared with the reference.

If a repetition is a single pass, every repetition is a fresh pass, and the warm-up repeats. If it is several passes,
fresh passes follow the repetitions. In both cases fresh passes must take as long as repeated passes (`disagree`). If
they take longer, pairs of a fresh pass and a pass that repeats its content run in turn, each with caches and threads in
the same state, and a test of all pairs decides (`are_kept`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.answer import Answer
from snnbench.cases.problem import Problem
from snnbench.proof.comparison import Finding, compare_gradient

PASSES = 5
"""The fewest fresh passes of a phase, one of them on content drawn anew."""
FEWEST_JUDGED = 3
"""Fresh passes of a kind, and repeated passes, before the fastest of each are compared; more are run if there are
fewer."""
REPEATS = 3
"""Passes on the same content after a fresh pass. The last is compared with the fresh pass: a library may answer
honestly once or twice before it keeps answers."""
HALF = 15
PAIRS = 2 * HALF
"""The test decides after half of the pairs, or else after all of them."""
LOOKED_AT = 5
"""From so many pairs on, the test ends as soon as fresh passes take no longer on average."""
CHANCE = 0.001
"""The false positive rate of the test, at most, if no answer is kept."""
CHANCE_OF_EACH = CHANCE / 2
"""That of each of its two decisions."""
SLACK_NS = 100_000
"""Time allowed for a waking thread and a cold cache, for a pass of any length."""
FEWEST_ORDERS = 100
"""If a batch has fewer orders, an order would soon repeat, so its content is always drawn anew."""
LARGEST_ORDERED = 10
FIRST_DRAWN = 3
"""The number of the first content beyond the problem's two inputs and the reversed cotangent."""
MARGIN = 0.2
"""Share of a repeated pass by which a fresh pass may be slower: branch prediction is worse on new content."""

Order = NDArray[np.intp]
Pair = tuple[int, int]
"""Nanoseconds of a fresh pass, and of a pass that repeats its content."""


@dataclass(frozen=True, slots=True)
class Content:
    """The number of an input and cotangent; `order` is its order of the samples of content 0, None if drawn anew."""

    number: int
    order: Order | None


@dataclass(slots=True)
class Contents:
    """Content that this process has not seen, one after the other; each replaces the content before it."""

    problem: Problem
    seed: int
    _orders: set[tuple[int, ...]] = field(default_factory=set)
    _numbers: Iterator[int] | None = None
    _last: int | None = None

    def next(self, drawn: bool) -> Content:
        """New content: content 0 in another order of its samples, or drawn anew if `drawn` or if orders are too few."""
        batch = self.problem.case.batch
        if self._numbers is None:
            self._numbers = iter(range(FIRST_DRAWN, 1 << 30))
            self._orders.add(tuple(range(batch)))
        if self._last is not None:
            self.problem.forget(self._last)
        number = self._last = next(self._numbers)
        if drawn or math.factorial(min(batch, LARGEST_ORDERED)) < FEWEST_ORDERS:
            return Content(number, None)
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, number])))
        order = generator.permutation(batch)
        while tuple(order.tolist()) in self._orders:
            order = generator.permutation(batch)
        self._orders.add(tuple(order.tolist()))
        self.problem.arrange(number, order)
        return Content(number, order)


def in_first_order(answer: Answer, order: Order) -> Answer:
    """The answer to content in this order, as the answer to content 0."""
    back = np.argsort(order)

    def sorted_back(array: NDArray[np.generic] | None) -> NDArray[np.generic] | None:
        fits = array is not None and array.ndim == 3 and array.shape[1] == len(order)
        return array[:, back] if array is not None and fits else array

    return replace(answer, spikes=sorted_back(answer.spikes), input=sorted_back(answer.input))


Memory = dict[tuple[str, int], NDArray[Any]]
"""The arrays of a copy, by the name of the output and the number of the layer."""


def copied(answer: Answer, memory: Memory | None = None) -> Answer:
    """A copy of the answer, which unfinished work cannot change. It overwrites an earlier copy in the same `memory`."""
    arrays: Memory = {} if memory is None else memory

    def copy(name: str, source: NDArray[Any], number: int = 0) -> NDArray[Any]:
        array = arrays.get((name, number))
        if array is None or (array.shape, array.dtype) != (source.shape, source.dtype):
            arrays[name, number] = array = np.array(source)
        else:
            np.copyto(array, source)
        return array

    def copies(name: str, sources: list[NDArray[Any]] | None) -> list[NDArray[Any]] | None:
        return None if sources is None else [copy(name, source, number) for number, source in enumerate(sources)]

    return Answer(
        None if answer.spikes is None else copy("spikes", answer.spikes),
        copies("weights", answer.weights),
        copies("biases", answer.biases),
        None if answer.input is None else copy("input", answer.input),
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
    compare_gradient(finding, name, got, np.asarray(expected, np.float64), tolerance)


def disagree(fresh_ns: Sequence[int], repeated_ns: float, synchronisation_ns: float) -> bool:
    """Whether even the fastest fresh pass takes longer than a repeated pass allows.

    Chance cannot make a fresh pass faster, so if answers are kept, the fastest fresh pass is slow, too.
    """
    allowed_ns = repeated_ns * (1 + MARGIN) + synchronisation_ns + SLACK_NS
    return len(fresh_ns) > 0 and min(fresh_ns) > allowed_ns


def undecided(pairs: Sequence[Pair]) -> bool:
    """Whether another pair is needed: there are few so far, or fresh passes may take longer on average."""
    if len(pairs) < LOOKED_AT:
        return True
    return len(pairs) < PAIRS and float(_excess(pairs).mean()) > 0 and not are_kept(pairs)


def are_kept(pairs: Sequence[Pair]) -> bool:
    """Whether fresh passes take longer than repeated passes: a sign-flip test of the mean of half or all pairs.

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
    """Median ratio of a fresh pass to its repeated pass."""
    return median(fresh_ns / repeated_ns for fresh_ns, repeated_ns in pairs)


def _excess(pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """By how much each fresh pass exceeds the time that its repeated pass allows, as a logarithm."""
    return np.array(
        [math.log(max(1, fresh_ns - SLACK_NS) / (repeated_ns * (1 + MARGIN))) for fresh_ns, repeated_ns in pairs]
    )
