"""Inputs, weights and cotangents of a case: made from its seed, identical for every library.

Inputs and cotangents are numbered. Repetitions run on number 0, verification also on 1. Further numbers are for fresh
passes: no pass has seen their content, so a kept answer cannot pass for a new one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from snnbench.work.case import Case

Drawn = TypeVar("Drawn")
Array = NDArray[np.float32]
Layer = tuple[Array, Array]
"""Weight [N_out, N_in] and bias [N_out]."""

WEIGHT_SCALE = 0.9
"""Standard deviation of the current that a layer gets from its input: about 0.14 spikes per step at beta = 0.9."""
BIAS_SCALE = 0.05


@dataclass(frozen=True, slots=True)
class Problem:
    """The arrays of a case. Each is drawn once, at first use: at N = 16384 that takes seconds.

    All callers share the problem's own arrays, so a session copies the arrays that a network may write to.
    """

    case: Case
    exact: bool = False
    drive: float = 1.0
    _drawn: dict[tuple[str, int], object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def layers(self) -> list[Layer]:
        """Weight [N, N] and bias [N] of each layer, float32; `drive` times the case's."""
        return self._once("layers", 0, self._layers)

    def input(self, which: int) -> Array:
        """The input [T, B, N]: spikes, 0 or 1; or numbers from the standard normal distribution."""
        return self._once("input", which, lambda: self._input(which))

    def cotangent(self, which: int) -> Array:
        """dL/d(spikes) [T, B, N], dense: a sum or mean in its place would hide every error of order in time."""
        return self._once("cotangent", which, lambda: self._cotangent(which))

    def layer(self, number: int, entering: Array, cotangent: Array) -> "Problem":
        """The problem of one layer by itself: content 0 is its input and the cotangent of its output."""
        kind, wanted = ("spikes", True) if number else (self.case.input_kind, self.case.input_gradient)
        alone = Problem(self.case.with_(layers=1, input_kind=kind, input_gradient=wanted), self.exact, self.drive)
        alone._drawn["layers", 0] = [self.layers()[number]]
        alone.put(0, entering, cotangent)
        return alone

    def put(self, number: int, entering: Array, cotangent: Array) -> None:
        """Make content `number` of these arrays."""
        self._drawn["input", number], self._drawn["cotangent", number] = entering, cotangent

    def arrange(self, number: int, order: NDArray[np.intp]) -> None:
        """Make content `number` of content 0, with the samples of the batch in this order."""
        for name, array in (("input", self.input(0)), ("cotangent", self.cotangent(0))):
            self._drawn[name, number] = np.ascontiguousarray(array[:, order])

    def forget(self, number: int) -> None:
        """Drop an input and a cotangent; asked for again, they are drawn again."""
        for name in ("input", "cotangent"):
            self._drawn.pop((name, number), None)

    def _once(self, name: str, which: int, draw: Callable[[], Drawn]) -> Drawn:
        if (name, which) not in self._drawn:
            self._drawn[name, which] = draw()
        return self._drawn[name, which]  # type: ignore[return-value]

    def _layers(self) -> list[Layer]:
        make = _sixteenths if self.exact else _normal
        layers = [make(self.case, number) for number in range(self.case.layers)]
        if self.drive == 1.0:
            return layers
        return [(np.float32(self.drive) * weight, np.float32(self.drive) * bias) for weight, bias in layers]

    def _input(self, which: int) -> Array:
        chance = _generator(self.case, "input", which).random(_shape(self.case), dtype=np.float32)
        spikes = np.less(chance, self.case.input_rate, out=chance)
        if self.case.input_kind == "spikes":
            return spikes
        return spikes * _generator(self.case, "amplitude", which).standard_normal(_shape(self.case), dtype=np.float32)

    def _cotangent(self, which: int) -> Array:
        if which == REVERSED:
            return np.ascontiguousarray(self.cotangent(1)[::-1])
        return _generator(self.case, "cotangent", which).standard_normal(_shape(self.case), dtype=np.float32)


REVERSED = 2
"""The second cotangent, reversed in time: a gradient that ignores time would not change."""

EXAM_SHAPE = {"time_steps": 8, "batch": 5, "neurons": 37}


def exam(case: Case, layers: int) -> Problem:
    """The exact exam of this case's neuron: nothing is rounded, and no potential can equal the threshold.

    Weights and biases are sixteenths and beta is 1/2, so every potential is a multiple of 2^-11 less a sum of threshold
    fractions. With threshold = 1 + 2^-13 the distance to it is at least 2^-13, and 24 bits hold every value while
    |u| < 8. So any order of summation, fused or not, gives the same spikes. Formats with 16 bits cannot hold these
    values: their exam runs in float32, and the spot check judges them.
    """
    return Problem(odd(case, layers).case.with_(beta=0.5, threshold=1 + 2.0**-13), exact=True)


def odd(case: Case, layers: int, drive: float = 1.0) -> Problem:
    """The neuron of `case` in the shape of the exam, with axes of different lengths."""
    dtype = case.dtype if case.dtype in ("float32", "float64") else "float32"
    changes = {"input_kind": "spikes", "input_rate": 0.5, "input_gradient": True, "dtype": dtype}
    return Problem(case.with_(**EXAM_SHAPE, layers=layers, **changes), drive=drive)


def _shape(case: Case) -> tuple[int, int, int]:
    return case.time_steps, case.batch, case.neurons


def _generator(case: Case, name: str, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([case.seed, number, *name.encode()])))


def _normal(case: Case, number: int) -> Layer:
    generator = _generator(case, "weight", number)
    weight = generator.standard_normal((case.neurons, case.neurons), dtype=np.float32)
    weight *= np.float32(WEIGHT_SCALE / (case.input_rate * case.neurons) ** 0.5)
    bias = np.float32(BIAS_SCALE) * generator.standard_normal(case.neurons, dtype=np.float32)
    return weight, bias


def _sixteenths(case: Case, number: int) -> Layer:
    """A layer with six terms of at most a half in each row, so that |x| <= 3.5 and |u| <= 7 for any input.

    A later layer gets fewer spikes. More bias keeps it firing, because a silent layer could hide a wrong one.
    """
    generator = _generator(case, "exam", number)
    weight = np.zeros((case.neurons, case.neurons), dtype=np.float32)
    for row in weight:
        chosen = generator.choice(case.neurons, size=6, replace=False)
        row[chosen] = generator.integers(-5, 9, size=6) / 16
    bias = ((generator.integers(-2, 5, size=case.neurons) + (4 if number else 0)) / 16).astype(np.float32)
    return weight, bias
