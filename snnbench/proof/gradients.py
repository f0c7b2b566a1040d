"""The gradients of an answer beside those of the reference, which follows the answer's spikes.

A gradient that is off by more than rounding in itself explains is compared with those of other runs, in which rounding
decided otherwise about a spike (reruns.py) or about the side of a surrogate's jump (jumps.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import constants
from snnbench.cases.answer import Answer
from snnbench.cases.case import HALVES, Case
from snnbench.cases.rule import Rule
from snnbench.cases.trace import Trace
from snnbench.proof import amplification
from snnbench.proof.comparison import Finding, compare_gradient, compare_parts, relative_parts
from snnbench.proof.following import Followed
from snnbench.proof.jumps import Jump, settled
from snnbench.proof.reruns import nearest
from snnbench.proof.sample import FirstLayer
from snnbench.proof.tolerance import FEWEST_IN_PART, PART_TOLERANCES, fewest_tolerance, gradient_tolerance

Array = NDArray[np.float64]
Change = tuple[Any, Any]
"""Where a jump changes a gradient, and by how much."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """The gradients of an `answer`, compared with those of the reference that `followed` its spikes on a sample.

    Their errors and the complaints about them go into the `finding`.
    """

    finding: Finding
    followed: Followed
    answer: Answer

    def compare_input(self) -> None:
        """Compare the gradient of the input."""
        case, followed, source, got = self._case, self.followed, self.followed.given.source, self.answer.input
        sample = followed.sample
        if got is not None and got.shape == case.input_shape:
            is_of_samples = len(sample.neurons) == case.neurons
            got = got[:, sample.batch] if is_of_samples else got[:, :, sample.neurons]

        def change(jump: Jump) -> Change:
            return source.input_change(sample, jump)

        tolerance = gradient_tolerance(case, summed=max(1, case.fan_out))
        expected = settled(followed.input_gradient, got, map(change, followed.jumps))
        expected = self._second_run(expected, got, tolerance, change)
        magnified = partial(self._allowed, expected, source.input_gradient)
        fewest = self._fewest()
        compare_gradient(self.finding, "input", got, expected, tolerance, magnified=magnified, fewest=fewest)
        is_told = case.time_steps * case.batch >= FEWEST_IN_PART
        if not isinstance(source, FirstLayer) and not case.is_exact_format and is_told:

            def magnified_parts() -> Array:
                each = np.array([relative_parts(error, expected, 2) for error in followed.errors])
                worst: Array = amplification.FACTOR * each.max(0)
                return worst

            wider = PART_TOLERANCES * self.finding.tolerances.get("input", tolerance)
            compare_parts(self.finding, "input", got, expected, wider, (2,), magnified_parts)

    def compare_parameters(self, linear: FirstLayer) -> None:
        """Compare the gradients of the weight and bias of the `linear` layer, and of trained constants."""
        case, followed, answer, sample = self._case, self.followed, self.answer, self.followed.sample
        tolerance, fewest = gradient_tolerance(case, summed=case.time_steps * case.batch), self._fewest(case.time_steps)
        weights, biases = (layers[0] for layers in (answer.weights, answer.biases) if layers is not None)
        shape = linear.layer[0].shape
        if weights.shape != shape:
            compare_gradient(self.finding, "weight", weights, np.empty(shape), tolerance)
            return
        gradient = followed.weight_gradient(linear)
        got, of_biases = weights[sample.neurons], biases[sample.neurons]

        def of_weight(jump: Jump) -> Change:
            return jump.neuron, linear.weight_change(sample, jump)

        def of_bias(jump: Jump) -> Change:
            return jump.neuron, jump.change.sum()

        bias = followed.gradient.sum((0, 1))
        for name, part, expected, change, of_current in (
            ("weight", got, gradient, of_weight, linear.weight_gradient),
            ("bias", of_biases, bias, of_bias, lambda gradient: gradient.sum((0, 1))),
        ):
            magnified = partial(self._allowed, expected, of_current)
            near = settled(expected, part, map(change, followed.jumps))
            near = self._second_run(near, part, tolerance, change)
            compare_gradient(self.finding, name, part, near, tolerance, magnified=magnified, fewest=fewest)
        for number, name in enumerate(self._rule.trained):
            self._compare_constant(name, answer.constant(number))

    def _compare_constant(self, name: str, got: NDArray[np.generic] | None) -> None:
        """Compare the gradient of a trained constant, for which everything is compared."""
        case, rule, followed = self._case, self._rule, self.followed
        of_neuron = rule.trained_each == "neuron"

        def change(jump: Jump) -> Change:
            at, trace = (slice(None), jump.sample, jump.neuron), followed.trace
            column = Trace(trace.potential[at], trace.spikes[at], trace.decayed[at])
            return jump.neuron * of_neuron, constants.terms(name, jump.change, column, rule).sum()

        def magnified() -> float:
            errors = (of_constant(name, followed, error) for error in followed.errors)
            return amplification.allowed(expected, errors, case.dtype, size)

        of_terms = constants.terms(name, followed.gradient, followed.trace, rule)
        expected, size = constants.summed(of_terms, rule), constants.size(of_terms)
        tolerance = gradient_tolerance(case, summed=case.time_steps * case.batch * (1 if of_neuron else case.neurons))
        near, fewest = settled(expected, got, map(change, followed.jumps)), self._fewest(case.time_steps)
        compare_gradient(self.finding, name, got, near, tolerance, size, magnified, fewest)

    def _second_run(
        self, expected: Array, got: NDArray[np.generic] | None, tolerance: float, change: Callable[[Jump], Change]
    ) -> Array:
        """`expected`, or that of the second run of the neurons to which `got` is nearest, if `got` is off by more."""
        if got is None or got.shape != expected.shape or self._case.dtype in HALVES:
            return expected
        if np.linalg.norm(np.asarray(got, np.float64) - expected) <= tolerance * np.linalg.norm(expected):
            return expected
        for runs in self.followed.reruns:
            expected = nearest(expected, got, map(change, runs))
        return expected

    def _fewest(self, accumulated: int = 0) -> float | None:
        """In 16 bits, the relative error from which a gradient is held to the recurrence of the case."""
        return fewest_tolerance(self._case, accumulated) if self._case.dtype in HALVES else None

    def _allowed(self, expected: Array, of_current: Callable[[Array], Array]) -> float:
        """The relative error allowed in a gradient that is a linear function `of_current`, the gradient of currents."""
        return amplification.allowed(expected, map(of_current, self.followed.errors), self._case.dtype)

    @property
    def _case(self) -> Case:
        return self.followed.given.case

    @property
    def _rule(self) -> Rule:
        return self.followed.given.rule


def of_constant(name: str, followed: Followed, gradient: Array) -> Array:
    """The gradient of a trained constant for dL/d(current) [T, B, N]."""
    rule = followed.given.rule
    return constants.summed(constants.terms(name, gradient, followed.trace, rule), rule)
