"""The check of several layers: the whole answer against a reference that runs from the input on its own.

A spike that rounding moves in a hidden layer puts its whole sample on another path. So samples are judged. A sample may
leave the reference's path only after one of its potentials, in some layer, is within the reach of rounding of the
threshold. The number of such samples is limited to the number of spikes that may differ; if no other sample is left,
nothing is proved. Gradients over the batch are compared if all samples agree, the input gradient for each sample that
agrees. A hidden spike that rounding decides may leave all output spikes as they are; gradients are compared with it on
the side that they are nearer to.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.problem import Layer
from snnbench.cases.rule import Rule
from snnbench.cases.trace import Trace
from snnbench.proof import amplification
from snnbench.proof.amplification import Backpropagation
from snnbench.proof.comparison import Finding, compare_gradient, compare_spikes
from snnbench.proof.tolerance import (
    allowed_by_chance,
    allowed_differences,
    expected_differences,
    of_chance,
    of_potentials,
    of_sums,
    round_to,
)

Array = NDArray[np.float64]
Tolerance = Callable[[int], float]
"""Number of terms in each entry of a gradient -> relative error allowed in it."""
MOST_UNDECIDED = 16
"""Hidden spikes that are tried on both sides of the threshold, at most."""


class Network(Protocol):
    """A check of the answers of several layers."""

    def check(self, finding: Finding, answer: Answer, spikes: NDArray[np.generic], tolerance: Tolerance) -> None:
        """Compare `spikes` [T, B, N] and the answer's gradients, if it has any, and complain."""


class NetworkCheck:
    """The reference of a network on one input [T, B, N] and cotangent [T, B, N], computed once for all answers."""

    def __init__(
        self,
        case: Case,
        rule: Rule,
        layers: list[Layer],
        inputs: NDArray[np.float32],
        cotangent: NDArray[np.float32],
    ) -> None:
        self.case, self.rule = case, rule
        self.inputs = inputs.astype(np.float64)
        self._cotangent = cotangent
        rounded = ((round_to(weight, case.product_format), round_to(bias, case.dtype)) for weight, bias in layers)
        self.layers = [(rule.weights(weight), bias) for weight, bias in rounded]
        self.traces = reference.network_forward(self.layers, self.inputs, rule)

    def check(self, finding: Finding, answer: Answer, spikes: NDArray[np.generic], tolerance: Tolerance) -> None:
        """Compare `spikes` [T, B, N] and the answer's gradients, if it has any."""
        case = self.case
        got, last = np.asarray(spikes, np.float64), self.traces[-1]
        differing = (got != last.spikes).any(2)
        # A difference is explained by a close potential at its own step or before.
        explained = np.logical_or.accumulate(self._close)[np.argmax(differing, 0), np.arange(case.batch)]
        differs = differing.any(0)
        excused = differs & explained
        if excused.sum() > allowed_differences(case.updates) and excused.sum() > self._diverted:
            excused[:] = False
        if excused.all():
            finding.unprovable = "rounding of a hidden spike diverts every sample"
            return
        agreeing = ~differs
        judged = ~excused
        compare_spikes(finding, got[:, judged], last.spikes[:, judged], last.potential[:, judged], self.rule)
        finding.differing = int((got != last.spikes).sum())
        finding.rates = {str(number): float((each.spikes != 0).mean()) for number, each in enumerate(self.traces)}
        if answer.weights is None or answer.biases is None or finding.complaints:
            return
        off = self._compare(answer, agreeing, self._gradients, tolerance)
        if off.complaints and agreeing.all():
            off = self._compare(answer, agreeing, self._settled(answer), tolerance)
        finding.gradient_errors, finding.cosines, finding.tolerances = off.gradient_errors, off.cosines, off.tolerances
        finding.complaints, finding.unprovable = off.complaints, off.unprovable

    def _compare(
        self, answer: Answer, agreeing: NDArray[np.bool_], expected: reference.Gradients, tolerance: Tolerance
    ) -> Finding:
        """The finding on the gradients of the samples that agree; parameters sum over all samples."""
        finding, case = Finding(), self.case
        if agreeing.all():
            summed = tolerance(case.time_steps * case.batch)
            for name, part, layers in (("weight", "weights", answer.weights), ("bias", "biases", answer.biases)):
                for number, got in enumerate(layers or []):
                    of_layer = amplification.of_layer(part, number)
                    wanted = of_layer(expected)
                    magnified = partial(self._allowed, wanted, of_layer)
                    compare_gradient(finding, f"{name} of layer {number}", got, wanted, summed, magnified=magnified)
        if case.input_gradient:
            entering = None if answer.input is None else answer.input[:, agreeing]
            wanted = expected.input[:, agreeing]
            magnified = partial(self._allowed, wanted, lambda off: off.input[:, agreeing])
            compare_gradient(finding, "input", entering, wanted, tolerance(case.fan_out), magnified=magnified)
        return finding

    def _settled(self, answer: Answer) -> reference.Gradients:
        """The gradients with each hidden spike that rounding decides on the side that is nearer to the answer's."""
        spikes = [trace.spikes for trace in self.traces]
        best, distance = self._gradients, _distance(answer, self._gradients)
        for layer, place in self._undecided:
            flipped = self._flipped(spikes, layer, place)
            tried = [flipped if number == layer else given for number, given in enumerate(spikes)]
            gradients = self._gradients_with(tried)
            if (off := _distance(answer, gradients)) < distance:
                spikes, best, distance = tried, gradients, off
        return best

    def _flipped(self, spikes: list[Array], layer: int, place: tuple[int, ...]) -> Array:
        """The spikes of a layer with another one at this place, after which its neuron goes on from there."""
        step, sample, neuron = place
        (weight, bias), entering = self.layers[layer], self.inputs if layer == 0 else spikes[layer - 1]
        current = entering[:, sample] @ weight[neuron] + bias[neuron]
        forced = spikes[layer][:, sample, neuron].copy()
        forced[step] = 1 - forced[step]
        forced[step + 1 :] = np.nan
        flipped = spikes[layer].copy()
        flipped[:, sample, neuron] = reference.forward(current, self.rule, forced).spikes
        return flipped

    def _gradients_with(self, spikes: list[Array]) -> reference.Gradients:
        """The gradients with these spikes of each layer."""
        traces, inputs = [], self.inputs
        for (weight, bias), given in zip(self.layers, spikes, strict=True):
            traces.append(reference.forward(inputs @ weight.T + bias, self.rule, given))
            inputs = given
        return self._backpropagation(traces).gradients

    @cached_property
    def _undecided(self) -> list[tuple[int, tuple[int, ...]]]:
        """The (layer, place) of the hidden potentials within the reach of rounding, nearest to the threshold first."""
        close_places = []
        for layer, (trace, margin) in enumerate(zip(self.traces[:-1], self._margins[:-1], strict=True)):
            distance = self.rule.distance(trace.potential)
            places = zip(*np.nonzero(distance <= margin), strict=True)
            close_places += [(distance[place], layer, place) for place in places]
        return [(layer, place) for _, layer, place in sorted(close_places)[:MOST_UNDECIDED]]

    def _allowed(self, expected: Array, part: Callable[[reference.Gradients], Array]) -> float:
        return amplification.allowed(expected, map(part, self._errors), self.case.dtype)

    @cached_property
    def _errors(self) -> list[reference.Gradients]:
        return self._backpropagation(self.traces).errors()

    @cached_property
    def _diverted(self) -> int:
        """How many spikes of all layers rounding may move."""
        inputs, expected = self.inputs, 0.0
        for (weight, bias), trace in zip(self.layers, self.traces, strict=True):
            summing = of_chance(self.rule.gain * (inputs @ weight.T + bias), self.case)
            expected += expected_differences(trace, self.rule, self.case.dtype, summing)
            inputs = trace.spikes
        return allowed_by_chance(expected)

    @cached_property
    def _gradients(self) -> reference.Gradients:
        return self._backpropagation(self.traces).gradients

    def _backpropagation(self, traces: list[Trace]) -> Backpropagation:
        cotangent = round_to(self._cotangent, self.case.dtype)
        return Backpropagation(self.layers, self.inputs, traces, cotangent, self.rule, self.case)

    @cached_property
    def _close(self) -> NDArray[np.bool_]:
        """[T, B]: whether a potential of any layer is within the reach of rounding of the threshold."""
        close = np.zeros(self.inputs.shape[:2], bool)
        for trace, margin in zip(self.traces, self._margins, strict=True):
            close |= (self.rule.distance(trace.potential) <= margin).any(2)
        return close

    @cached_property
    def _margins(self) -> list[Array]:
        """How far rounding may have moved each potential of each layer."""
        inputs, margins = self.inputs, []
        for (weight, bias), trace in zip(self.layers, self.traces, strict=True):
            terms = np.abs(inputs) @ np.abs(weight).T + np.abs(bias)
            reach = of_sums(terms, self.rule, self.case)
            margins.append(of_potentials(trace, self.rule, self.case.dtype, inputs @ weight.T + bias, reach))
            inputs = trace.spikes
        return margins


def _distance(answer: Answer, gradients: reference.Gradients) -> float:
    """How far the gradients of the first layer's weight are apart."""
    assert answer.weights is not None
    return float(np.linalg.norm(answer.weights[0] - gradients.weights[0]))
