"""A problem: the inputs, weights and cotangents of a case, made from its seed, identical for every library.

Inputs and cotangents are numbered. Repetitions run on number 0, verification also on 1. Further numbers are for fresh
passes: no pass has seen their content, so a kept answer cannot pass for a new one.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.case import Case
from snnbench.cases.operations import Operation

Drawn = TypeVar("Drawn")
Array = NDArray[np.float32]
Layer = tuple[Array, Array]
"""Weight [N_out, N_in] and bias [N_out]."""

BLOCK = 1 << 22
"""The most numbers of an array that one generator draws."""
REVERSED = 2
"""The second cotangent, reversed in time: a gradient that ignores time would not change."""
EXAM_SHAPE = {"time_steps": 8, "batch": 5, "neurons": 37}
"""The exam's sizes: axes of different lengths, so that swapped axes cannot pass."""
EXAM_BETA, EXAM_THRESHOLD = 0.5, 1 + 2.0**-13
"""The exam's neuron, for inputs in sixteenths. Every potential is a multiple of 2^-11 less threshold fractions.

The distance to the threshold is at least 2^-13, and 24 bits hold every value while |u| < 8. So any order of summation,
fused or not, gives the same spikes. Formats with 16 bits cannot hold these values: their exam runs in float32, and the
spot check judges them.
"""


@dataclass(frozen=True, slots=True)
class Problem(ABC):
    """The arrays of a case. Each is drawn once, at first use: at N = 16384 that takes seconds.

    All callers share the problem's own arrays, so a session copies the arrays that a network may write to. If `exact`,
    all numbers are those of the exam. `drive` scales all currents, for a neuron with another threshold.
    """

    case: Case
    exact: bool = False
    drive: float = 1.0
    _drawn: dict[tuple[str, int], object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def draw(self, numbers: Iterable[int] = (0,), goes_back: bool = True) -> None:
        """Draw the parameters and the contents of these numbers, which are otherwise drawn at first use.

        As many arrays are drawn side by side as there are CPUs. Only content that goes back has a cotangent.
        """
        arrays = [self.input, self.cotangent] if goes_back else [self.input]
        draws: list[Callable[[], object]] = [
            self.layers,
            *(partial(draw, number) for number in numbers for draw in arrays),
        ]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            for drawn in [threads.submit(draw) for draw in draws]:
                drawn.result()

    def layers(self) -> list[Layer]:
        """Weight [N, N] and bias [N] of each linear layer, float32; empty if the input is the current."""
        return []

    def input(self, which: int) -> Array:
        """The input [T, B, N]."""
        return self._once("input", which, lambda: self._made(which, self.input, self._input))

    def cotangent(self, which: int) -> Array:
        """dL/d(spikes) [T, B, N], dense: a sum or mean in its place would hide every error of order in time."""
        return self._once("cotangent", which, lambda: self._made(which, self.cotangent, self._cotangent))

    @property
    def enters_as_spikes(self) -> bool:
        """Whether the input is 0 and 1, which every number format holds."""
        return False

    def put(self, number: int, entering: Array, cotangent: Array) -> None:
        """Make content `number` of these arrays."""
        self._drawn["input", number], self._drawn["cotangent", number] = entering, cotangent

    def arrange(self, number: int, order: NDArray[np.intp]) -> None:
        """Make content `number` of content 0, with the samples of the batch in this order."""
        self._drawn["order", number] = order

    def order(self, number: int) -> NDArray[np.intp] | None:
        """The order of the samples of content 0 in content `number`; None if it is drawn."""
        return self._drawn.get(("order", number))  # type: ignore[return-value]

    def forget(self, number: int) -> None:
        """Drop an input and a cotangent; asked for again, they are drawn again."""
        for name in ("input", "cotangent", "order"):
            self._drawn.pop((name, number), None)

    def _once(self, name: str, which: int, draw: Callable[[], Drawn]) -> Drawn:
        if (name, which) not in self._drawn:
            self._drawn[name, which] = draw()
        return self._drawn[name, which]  # type: ignore[return-value]

    def _made(self, which: int, first: Callable[[int], Array], draw: Callable[[int], Array]) -> Array:
        """An array of content `which`: drawn, or that of content 0 with the samples in another order."""
        order = self.order(which)
        return draw(which) if order is None else np.ascontiguousarray(first(0)[:, order])

    @abstractmethod
    def _input(self, which: int) -> Array:
        """The input of a number, drawn."""

    def _cotangent(self, which: int) -> Array:
        if which == REVERSED:
            return np.ascontiguousarray(self.cotangent(1)[::-1])
        return gaussian(self.case, "cotangent", which, self.case.shape)


class Stack(Problem):
    """A problem of several layers, each of which is a problem by itself."""

    @abstractmethod
    def layer(self, number: int, entering: Array, cotangent: Array) -> "Stack":
        """The problem of one layer by itself: content 0 is its input and the cotangent of its output."""

    @abstractmethod
    def first(self, count: int) -> "Stack":
        """The problem of the first layers, with inputs and cotangents of its own."""


class Graph(Problem):
    """A problem whose network is a sequence of operations, with a library's neuron at each site of neurons."""

    def draw(self, numbers: Iterable[int] = (0,), goes_back: bool = True) -> None:
        """Draw the parameters and the contents of these numbers."""
        super().draw(numbers, goes_back)
        self.parameters()

    @abstractmethod
    def operations(self) -> Sequence[Operation]:
        """The operations in order; the value of the last is the network's output."""

    @abstractmethod
    def parameters(self) -> dict[str, list[Array]]:
        """The parameters of each operation that has some, float32."""

    def put_parameters(self, arrays: Sequence[Array]) -> None:
        """Make these the parameters, in the order of the operations."""
        given = iter(arrays)
        named = {each.name: [next(given) for _ in each.parameters] for each in self.operations()}
        self._drawn["parameters", 0] = {name: each for name, each in named.items() if each}

    def neuron(self, operation: Operation) -> Case:
        """The case of the neurons at a site. A decay that differs between neurons is an array [N]."""
        return self.case

    @abstractmethod
    def site(self, operation: Operation, current: NDArray[Any], cotangent: NDArray[Any]) -> Problem:
        """The problem of the neurons of one site by themselves.

        Content 0 is their current [T, B, N] and the cotangent of their spikes.
        """


def gaussian(case: Case, name: str, number: int, shape: Sequence[int]) -> Array:
    """An array of a case, drawn from the standard normal distribution."""
    return _drawn(case, name, number, shape, lambda random, out: random.standard_normal(dtype=np.float32, out=out))


def uniform(case: Case, name: str, number: int, shape: Sequence[int]) -> Array:
    """An array of a case, drawn from the uniform distribution over [0, 1)."""
    return _drawn(case, name, number, shape, lambda random, out: random.random(dtype=np.float32, out=out))


def generator(case: Case, name: str, number: int) -> np.random.Generator:
    """The random generator of one array of a case, unless it is large."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([case.seed, number, *name.encode()])))


def _drawn(
    case: Case, name: str, number: int, shape: Sequence[int], fill: Callable[[np.random.Generator, Array], object]
) -> Array:
    """An array; a large one is drawn in blocks side by side, each by a generator of its own: NumPy's fastest one."""
    array = np.empty(shape, np.float32)
    if array.size <= BLOCK:
        fill(generator(case, name, number), array)
        return array
    numbers = array.reshape(-1)
    blocks = [numbers[start : start + BLOCK] for start in range(0, numbers.size, BLOCK)]
    seeds = [np.random.SeedSequence([case.seed, number, block, *name.encode()]) for block in range(len(blocks))]
    generators = [np.random.Generator(np.random.SFC64(seed)) for seed in seeds]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        list(threads.map(fill, generators, blocks))
    return array
