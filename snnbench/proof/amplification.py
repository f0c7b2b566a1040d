"""How far rounding moves the gradients of a case, by its own recurrence.

A narrow surrogate magnifies the rounding of a potential by its slope. A slow decay adds up the roundings of many steps.
An attached reset multiplies a gradient by 1 - threshold * ds/du at each step, and by more than 1 if ds/du is large. So
no number of roundoffs holds for every case.

The reference runs again on the answer's own spikes, in Monte Carlo arithmetic (Parker, Pierce and Eggert 2000, Monte
Carlo arithmetic: how to gamble with floating point and win): every operation is off by a random part of its unit
roundoff, and so is every constant. The largest of a few such runs, with a factor for chance and for programs with more
operations, is what a right answer may be off by.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import constants, recurrence, reference
from snnbench.cases.case import Case
from snnbench.cases.reference import Gradients
from snnbench.cases.rule import Rule
from snnbench.cases.surrogate import JUMPS
from snnbench.cases.trace import Trace
from snnbench.proof.tolerance import UNIT_ROUNDOFF, of_chance, of_decay

Array = NDArray[np.float64]
RUNS = 8
FACTOR = 3.0
"""A right answer may be off by so many times the largest error of the runs.

Set on drawn cases (tests/drawn.py): where many potentials decide, right programs stay below the largest error itself.
With a factor of 2, two of 600 cases accused one: a single jump of a surrogate decided there.
"""
SMALLEST = {"float64": 0.0, "float32": 2.0**-150, "bfloat16": 2.0**-134, "float16": 2.0**-25}
"""Half of the smallest number above 0: the rounding of an even smaller one."""
PARTIAL = 16
"""A partial sum may be so many times as large as the whole."""
LARGEST = {"float64": 1.8e308, "float32": 3.4e38, "bfloat16": 3.4e38, "float16": 65504.0}


def errors(
    current: Array, trace: Trace, cotangent: Array, rule: Rule, case: Case, recurrent: Array | None = None
) -> Iterator[Array]:
    """The error of dL/d(current) [T, ...] in each run, for dL/d(spikes) = `cotangent` [T, ...] and a trace's spikes.

    The current includes what comes through `recurrent` weights.
    """
    random = np.random.Generator(np.random.Philox(case.seed))
    gradient = reference.backward(cotangent, trace, rule, recurrent=recurrent)
    for run in range(RUNS):
        yield _rounded(current, trace, cotangent, gradient, rule, case, random, recurrent, run) - gradient


@dataclass(frozen=True, slots=True)
class Backpropagation:
    """Backpropagation through a stack of layers, from their traces on `inputs` [T, B, N], in float64.

    `cotangent` is that of the last spikes. Without layers the inputs are the currents of the only neurons.
    """

    layers: list[tuple[Array, Array]]
    inputs: Array
    traces: list[Trace]
    cotangent: Array
    rule: Rule
    case: Case

    @property
    def gradients(self) -> Gradients:
        """The gradients without rounding."""
        return reference.network_backward(self.layers, self.inputs, self.traces, self.cotangent, self.rule)

    def errors(self, runs: int = RUNS) -> list[Gradients]:
        """The errors of all gradients in each run, on the spikes of the traces."""
        random, right = np.random.Generator(np.random.Philox(self.case.seed)), self.gradients
        return [_off(right, self._rounded(random)) for _ in range(runs)]

    def _rounded(self, random: np.random.Generator) -> Gradients:
        """The gradients if each operation of the neurons is off by a random part of its roundoff."""
        by_weight, by_bias, trained, cotangent = [], [], list[Array](), self.cotangent
        for number in reversed(range(len(self.traces))):
            entering, trace = self.traces[number - 1].spikes if number else self.inputs, self.traces[number]
            current, recurrent = entering, None
            if self.layers:
                weight, bias = self.layers[number]
                forward_weight, recurrent = recurrence.split(weight, entering.shape[2])
                entering = entering if recurrent is None else recurrence.beside_own(entering, trace.spikes)
                current = entering @ weight.T + bias
            gradient = reference.backward(cotangent, trace, self.rule, recurrent=recurrent)
            rounded = _rounded(current, trace, cotangent, gradient, self.rule, self.case, random, recurrent)
            if not self.layers:
                return Gradients([], [], rounded)
            by_weight.append(np.tensordot(rounded, entering, ((0, 1), (0, 1))))
            by_bias.append(rounded.sum((0, 1)))
            trained = constants.gradients(rounded, trace, self.rule) + trained
            cotangent = rounded @ forward_weight
        return Gradients(by_weight[::-1], by_bias[::-1], cotangent, trained)


def of_layer(part: str, number: int) -> Callable[[Gradients], Array]:
    """The function that takes one of the `weights`, `biases` or `constants` from all gradients."""
    return lambda gradients: getattr(gradients, part)[number]


def allowed(expected: Array, errors: Iterable[Array], dtype: str, least_size: float = 0.0) -> float:
    """The relative error allowed in a gradient, for its errors in the runs; any if its sums may leave the format.

    It is relative to what is expected, or to `least_size` if that is larger.
    """
    if not np.abs(expected).max(initial=0.0) < LARGEST[dtype] / PARTIAL:
        return np.inf
    size = max(float(np.linalg.norm(expected)), least_size)
    largest = max(float(np.linalg.norm(error)) for error in errors)
    return FACTOR * largest / size if size else float(np.inf if largest else 0.0)


def _rounded(
    current: Array,
    trace: Trace,
    cotangent: Array,
    gradient: Array,
    rule: Rule,
    case: Case,
    random: np.random.Generator,
    recurrent: Array | None = None,
    run: int = 0,
) -> Array:
    """dL/d(current) if each operation is off by a random part of its roundoff: the parameters of a backward pass.

    A layer of few inputs has few currents. Adding one of them again and again rounds a potential in the same direction,
    so in every second run that rounding of a neuron is the same in all steps.
    """
    unit, smallest = UNIT_ROUNDOFF[case.dtype], SMALLEST[case.dtype]
    is_steady = run % 2 == 1 and 0 < case.fan_in <= math.log2(case.time_steps)

    def off(*results: Array | float, shape: tuple[int, ...] = current.shape) -> Array:
        """The error of operations with these results."""
        squares: Array | float = sum((unit * result) ** 2 + smallest**2 for result in results)
        error: Array = np.sqrt(squares) * random.uniform(-1.0, 1.0, shape)
        return error

    def about(constant: Any, size: Any = 0.0) -> Any:
        """A constant that a program computes from numbers up to `size`; 0 and 1 are exact."""
        if isinstance(constant, np.ndarray):
            signs = random.choice([-1.0, 1.0], constant.shape) * ((constant != 0) & (constant != 1))
            return constant + signs * unit * np.maximum(constant, size)
        if constant in (0.0, 1.0):
            return constant
        return constant + float(random.choice([-1.0, 1.0])) * unit * max(constant, size)

    near = replace(
        rule,
        synapse=about(rule.synapse, 1 - rule.synapse),
        gain=about(rule.gain, 1.0),  # of 1 - beta, say
        beta=about(rule.beta, 1 - rule.beta),
        threshold=about(rule.threshold),
        slope=about(rule.slope),
    )
    moved = trace
    if not rule.unit:  # fixed point is exact
        charge = rule.gain * current
        shape = current.shape[1:] if is_steady else current.shape
        added = trace.potential - trace.decayed
        of_state = off(trace.decayed, of_decay(rule) * trace.decayed, added, trace.potential, shape=shape)
        of_sums = of_chance(charge, case) * random.normal(size=current.shape)
        moved = reference.forward(current + (of_state + of_sums) / rule.gain, near, trace.spikes)
    if rule.surrogate in JUMPS and case.is_exact_format:  # jumps.py finds where rounding decides
        through = reference.slopes(trace, rule)
    else:
        distance = moved.potential - near.threshold
        through = reference.slope_at(distance + off(distance, distance), near)
    through = through + off(through, through, through, reference.slope_at(0.0, rule))
    later = np.append(gradient[1:], np.zeros_like(gradient[:1]), 0)
    if rule.detach_every:
        later[rule.detach_every - 1 :: rule.detach_every] = 0.0
    of_products: Array | float = 0.0
    given = cotangent
    if recurrent is not None:
        through_weights = later @ recurrent
        given = cotangent + through_weights
        of_products = of_chance(through_weights, case) * random.normal(size=current.shape) * through
    arriving = rule.beta * later / rule.gain
    reset = rule.through_reset(trace.potential) * arriving
    kept = arriving * np.stack([np.broadcast_to(rule.kept_in_backward(s), s.shape) for s in trace.spikes])
    of_gradient = off(given * through, reset * through, reset * through, kept, kept, gradient / rule.gain)
    return reference.backward(cotangent, moved, near, through, of_gradient + of_products, recurrent)


def _off(right: Gradients, rounded: Gradients) -> Gradients:
    weights = [ours - theirs for ours, theirs in zip(rounded.weights, right.weights, strict=True)]
    biases = [ours - theirs for ours, theirs in zip(rounded.biases, right.biases, strict=True)]
    trained = [ours - theirs for ours, theirs in zip(rounded.constants, right.constants, strict=True)]
    return Gradients(weights, biases, rounded.input - right.input, trained)
