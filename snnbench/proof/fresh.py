"""Fresh passes: single timed passes on content that no pass of the process has seen.

An answer that was kept is right, and fast, as long as content repeats. So a phase runs on new content as well:

* The input and the cotangent of the problem, with the samples of the batch in another order. What is right then is
  known: spikes and input gradients come in that order, and gradients of weights and biases stay.
* Content drawn anew: every sample is new. A part of its answer is compared with the reference.

Where a repetition is a single pass, every repetition is a fresh pass, and the warm-up repeats. Where it is several,
fresh passes follow the repetitions. Either way fresh passes have to take as long as repeated ones (`disagree`). Where
they do not, pairs of a fresh pass and of one that repeats its content run in turn, each on caches and threads in the
same state, and a test of all pairs decides (`are_kept`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import median

import numpy as np
from numpy.typing import NDArray

from snnbench.proof.comparison import Finding, compare_gradient
from snnbench.workloads.answer import Answer
from snnbench.workloads.problem import Problem

PASSES = 5
"""Fresh passes of a phase at the least, one of them on content drawn anew."""
FEWEST_JUDGED = 3
"""Fresh passes of a kind, and repeated ones, before the fastest of each are compared; where there are fewer, more are
run."""
REPEATS = 3
"""Passes on the same content after a fresh one, of which the last is compared with it: a library may answer honestly
once or twice before it keeps."""
PAIRS = 15
LOOKED_AT = 3
"""After so many pairs, and each one more, the test ends where fresh passes take no longer on average."""
CHANCE = 0.001
"""The test is wrong so often at most, where nothing is kept."""
SLACK_NS = 100_000
"""What a thread that wakes up and a cold cache may take, however short the pass."""
FEWEST_ORDERS = 100
"""A batch that can be ordered in fewer ways would soon see an order again: its content is always drawn."""
LARGEST_ORDERED = 10
FIRST_DRAWN = 3
"""The number of the first content that is neither of the problem's two inputs nor a reversed cotangent."""
MARGIN = 0.2
"""By so much of a repeated pass a fresh one may be slower: branches of the code are predicted worse on new content."""

Order = NDArray[np.intp]
Pair = tuple[int, int]
"""Nanoseconds of a fresh pass, and of one that repeats its content."""


@dataclass(frozen=True, slots=True)
class Content:
    """The number of an input and cotangent; the `order` of the samples of content 0 in it, or None if it was drawn."""

    number: int
    order: Order | None


@dataclass(slots=True)
class Contents:
    """Content that this process has not seen, in turn; what came before is forgotten."""

    problem: Problem
    seed: int
    _orders: set[tuple[int, ...]] = field(default_factory=set)
    _numbers: Iterator[int] | None = None
    _last: int | None = None

    def next(self, drawn: bool) -> Content:
        """New content: content 0 in another order of its samples, unless it has to be `drawn` or there are too few."""
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


def copied(answer: Answer) -> Answer:
    """The answer as it is now: nothing that is still under way changes it."""

    def arrays(some: list[NDArray[np.generic]] | None) -> list[NDArray[np.generic]] | None:
        return None if some is None else [np.array(array) for array in some]

    spikes, entering = (None if array is None else np.array(array) for array in (answer.spikes, answer.input))
    return Answer(spikes, arrays(answer.weights), arrays(answer.biases), entering)


def differing(answer: Answer, verified: Answer) -> NDArray[np.bool_] | None:
    """Where the spikes of two answers to content 0 differ; None where one has none, or of another shape."""
    if answer.spikes is None or verified.spikes is None or answer.spikes.shape != verified.spikes.shape:
        return None
    differs: NDArray[np.bool_] = answer.spikes != verified.spikes
    return differs


def compare_gradients(finding: Finding, answer: Answer, verified: Answer, tolerance: float) -> None:
    """Compare the gradients of two answers with the same spikes, and complain.

    Both are within `tolerance` of the reference, so they may be twice that apart.
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
    """Compare a gradient with a verified one. Most are equal to the bit, which is seen in a fraction of the time."""
    if got is not None and np.array_equal(got, expected):
        finding.gradient_errors.setdefault(name, 0.0)
        finding.cosines.setdefault(name, 1.0)
        return
    compare_gradient(finding, name, got, np.asarray(expected, np.float64), tolerance)


def disagree(fresh_ns: Sequence[int], repeated_ns: float, synchronisation_ns: float) -> bool:
    """Whether even the fastest fresh pass takes longer than it may beside a repeated one.

    Nothing makes a fresh pass faster, so where answers are kept the fastest is slow, too.
    """
    allowed_ns = repeated_ns * (1 + MARGIN) + synchronisation_ns + SLACK_NS
    return len(fresh_ns) > 0 and min(fresh_ns) > allowed_ns


def undecided(pairs: Sequence[Pair]) -> bool:
    """Whether another pair is needed: there are few so far, or fresh passes take longer on average."""
    return len(pairs) < PAIRS and (len(pairs) < LOOKED_AT or float(_excess(pairs).mean()) > 0)


def are_kept(pairs: Sequence[Pair]) -> bool:
    """Whether fresh passes take longer than repeated ones: a test of the mean of all pairs by all changes of sign.

    If nothing is kept, a disturbance meets either pass of a pair as often, so each pair could as well have had the
    other sign. The mean must be among the largest CHANCE of all means that signs could have given.
    """
    if len(pairs) < PAIRS:
        return False
    excess = _excess(pairs)
    as_large = _signs() @ excess >= excess.sum() - 1e-9
    return bool(as_large.mean() <= CHANCE)


@cache
def _signs() -> NDArray[np.float64]:
    """Every way to give PAIRS pairs a sign, a row each."""
    return np.array(1 - 2 * (np.arange(1 << PAIRS)[:, None] >> np.arange(PAIRS) & 1), np.float64)


def slowdown(pairs: Sequence[Pair]) -> float:
    """How many times as long a fresh pass takes, typically."""
    return median(fresh_ns / repeated_ns for fresh_ns, repeated_ns in pairs)


def _excess(pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """How far each fresh pass is beyond what it may take beside the repeated one, as a logarithm."""
    return np.array(
        [math.log(max(1, fresh_ns - SLACK_NS) / (repeated_ns * (1 + MARGIN))) for fresh_ns, repeated_ns in pairs]
    )
