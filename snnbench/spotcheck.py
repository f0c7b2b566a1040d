"""The spot check: the timed case itself, at full size, against float64 on a sample that is cheap at any size.

Neurons are independent given their input current, and samples are independent of each other. So the reference is
computed for a few dozen neurons over the whole batch (their spikes, their rows of the weight gradient, their bias
gradient), and for one sample over all neurons (its spikes and its input gradient). A network of several layers has
no independent neurons: there the whole reference is computed.

The reference's reset follows the answer's spikes, so each spike is judged by itself: it may differ only where the
reference's potential is so close to the threshold that rounding decides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snnbench import reference
from snnbench.inputs import Layer, Problem
from snnbench.rounding import of_potentials, of_sums, round_to
from snnbench.rule import Rule, rule_of
from snnbench.verify import (
    RATE_WINDOW,
    Answer,
    Finding,
    allowed_differences,
    compare_gradient,
    compare_spikes,
    gradient_tolerance,
    product_format,
)

Array = NDArray[np.float64]
SAMPLED_NEURONS = 32
ROWS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """A [T, b, n] part of the case: which samples, which neurons, and their current and its rounding margin."""

    batch: NDArray[np.intp]
    neurons: NDArray[np.intp]
    current: Array
    margin: Array

    @property
    def places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """For messages."""
        return self.batch, self.neurons


class SpotCheck:
    """The reference of one numbered input of a problem; `check` compares a pass's answer with it.

    The neuron is the case's, or the `rule` that a library declares of its own, which may be too silent for the case:
    without `guarded` no firing rate is asked for.
    """

    def __init__(
        self,
        problem: Problem,
        which: int,
        rule: Rule | None = None,
        cotangent: int | None = None,
        guarded: bool = True,
    ) -> None:
        self.which, self.guarded = which, guarded
        self.case, self.rule = problem.case, rule or rule_of(problem.case)
        self.layers: list[Layer] = problem.layers()
        self.inputs = problem.input(which)
        if self.case.input_kind != "spikes":  # 0 and 1 are the same in every format
            self.inputs = round_to(self.inputs, product_format(self.case)).astype(np.float32)
        self.cotangent = round_to(problem.cotangent(which if cotangent is None else cotangent), self.case.dtype)
        self.tolerance = gradient_tolerance(self.case)
        if rule is not None and product_format(self.case) in ("float32", "float64"):
            # What a library fixes may be narrow, and the rounding of a distance comes out of it so many times larger.
            self.tolerance *= max(1.0, rule.slope)

    def check(self, answer: Answer) -> Finding:
        """Compare what `answer` holds: spikes, gradients, or both (gradients need the spikes they belong to)."""
        finding = Finding()
        if answer.spikes is None:
            finding.complaints.append("no spikes")
        elif answer.spikes.shape != self.inputs.shape:
            compare_spikes(finding, answer.spikes, self.inputs, self.inputs, self.rule)
        elif self.case.layers == 1:
            self._few_neurons(finding, answer, answer.spikes)
            if finding.correct:
                self._one_sample(finding, answer, answer.spikes)
        else:
            self._whole(finding, answer, answer.spikes)
        if finding.correct and self.guarded:
            self._guard(finding)
        return finding

    def distance(self, answer: Answer) -> Finding:
        """How far an answer is from the reference left to itself, on sampled neurons: of what does other work.

        Spikes are counted, and nothing is complained about; the gradients are those of two different trains.
        """
        finding = Finding()
        if answer.spikes is None or answer.spikes.shape != self.inputs.shape or self.case.layers > 1:
            return finding
        neurons = _sampled(self.case.neurons, SAMPLED_NEURONS, self.case.seed)
        sample = self._sample(np.arange(self.case.batch), neurons)
        trace = reference.forward(sample.current, self.rule)
        got = np.asarray(answer.spikes[:, :, neurons], np.float64)
        compare_spikes(finding, got, trace.spikes, trace.potential, self.rule)
        finding.expected_rate = float(trace.spikes.mean())
        if answer.weights is not None:
            gradient = reference.backward(self.cotangent[:, :, neurons], trace, self.rule)
            got = np.asarray(answer.weights[0])[neurons]
            compare_gradient(finding, "weight", got, self._weight_gradient(gradient), np.inf)
        finding.complaints.clear()
        return finding

    def _few_neurons(self, finding: Finding, answer: Answer, spikes: NDArray[np.generic]) -> None:
        case = self.case
        neurons = _sampled(case.neurons, SAMPLED_NEURONS, case.seed)
        sample = self._sample(np.arange(case.batch), neurons)
        got = np.asarray(spikes[:, :, neurons], np.float64)
        trace = self._compare(finding, sample, got)
        if answer.weights is None or answer.biases is None or finding.complaints:
            return
        gradient = reference.backward(self.cotangent[:, :, neurons], trace, self.rule)
        expected = self._weight_gradient(gradient)
        weights, biases = np.asarray(answer.weights[0]), np.asarray(answer.biases[0])
        if weights.shape != self.layers[0][0].shape:
            compare_gradient(finding, "weight", weights, np.empty(self.layers[0][0].shape), self.tolerance)
            return
        compare_gradient(finding, "weight", weights[neurons], expected, self.tolerance)
        compare_gradient(finding, "bias", biases[neurons], gradient.sum((0, 1)), self.tolerance)

    def _one_sample(self, finding: Finding, answer: Answer, spikes: NDArray[np.generic]) -> None:
        case = self.case
        batch = _sampled(case.batch, 1, case.seed)
        sample = self._sample(batch, np.arange(case.neurons))
        trace = self._compare(finding, sample, np.asarray(spikes[:, batch], np.float64))
        if answer.weights is None or not case.input_gradient or finding.complaints:
            return
        gradient = reference.backward(self.cotangent[:, batch], trace, self.rule)
        weight = self.layers[0][0]
        expected = np.zeros_like(gradient)
        for rows in _slices(case.neurons):
            expected += gradient[:, :, rows] @ self.rule.weights(round_to(weight[rows], product_format(case)))
        got = answer.input
        compare_gradient(finding, "input", None if got is None else got[:, batch], expected, self.tolerance)

    def _sample(self, batch: NDArray[np.intp], neurons: NDArray[np.intp]) -> Sample:
        """The current of these neurons for these samples, and how far rounding may move the potential."""
        case = self.case
        weight, bias = self.layers[0]
        current = np.empty((case.time_steps, len(batch), len(neurons)))
        terms = np.empty_like(current)
        for part in _slices(len(neurons)):
            chosen = self.rule.weights(round_to(weight[neurons[part]], product_format(case))).T
            offset = round_to(bias[neurons[part]], case.dtype)
            for t in range(case.time_steps):
                entering = self.inputs[t, batch].astype(np.float64)
                current[t, :, part] = entering @ chosen + offset
                terms[t, :, part] = np.abs(entering) @ np.abs(chosen) + np.abs(offset)
        return Sample(batch, neurons, current, of_sums(terms, self.rule, case.dtype))

    def _weight_gradient(self, gradient: Array) -> Array:
        """Rows [n, N] of the weight gradient for gradients of the current [T, B, n], without a copy of the input."""
        steps = (np.tensordot(gradient[t], self.inputs[t].astype(np.float64), (0, 0)) for t in range(len(gradient)))
        return np.asarray(sum(steps))

    def _compare(self, finding: Finding, sample: Sample, got: Array) -> reference.Trace:
        rule = self.rule
        trace = reference.forward(sample.current, rule, forced=got)
        margin = of_potentials(trace, rule, self.case.dtype, sample.current, sample.margin)
        expected = rule.fired(trace.potential)
        differs = compare_spikes(finding, got, expected, trace.potential, rule, margin, sample.places)
        self._limit(finding, differs)
        return trace

    def _whole(self, finding: Finding, answer: Answer, spikes: NDArray[np.generic]) -> None:
        """Several layers: a spike that rounding moved in a hidden layer puts its whole sample on another path.

        So samples are judged. One may leave the reference's path only once a potential of its own, in some layer, came
        as close to the threshold as rounding reaches, and only as many may as spikes may differ. Gradients over the
        batch are compared where all samples agree, the input gradient for each sample that does.
        """
        case = self.case
        fmt = product_format(case)
        layers = [(self.rule.weights(round_to(w, fmt)), round_to(b, case.dtype)) for w, b in self.layers]
        inputs, got = self.inputs.astype(np.float64), np.asarray(spikes, np.float64)
        traces = reference.network_forward(layers, inputs, self.rule)
        differing = (got != traces[-1].spikes).any(2)
        close = self._close(layers, inputs, traces)
        # A difference is explained by a close potential at its own step or before.
        explained = np.logical_or.accumulate(close)[np.argmax(differing, 0), np.arange(case.batch)]
        differs = differing.any(0)
        excused = differs & explained
        if excused.sum() > min(allowed_differences(case.updates), case.batch - 1):
            excused[:] = False
        agreeing = ~differs
        judged = ~excused
        last = traces[-1]
        compare_spikes(finding, got[:, judged], last.spikes[:, judged], last.potential[:, judged], self.rule)
        finding.differing = int((got != traces[-1].spikes).sum())
        if answer.weights is None or answer.biases is None or finding.complaints:
            return
        expected = reference.network_backward(layers, inputs, traces, self.cotangent, self.rule)
        if not differs.any():
            for number in range(case.layers):
                weight, bias = answer.weights[number], answer.biases[number]
                compare_gradient(finding, f"weight of layer {number}", weight, expected.weights[number], self.tolerance)
                compare_gradient(finding, f"bias of layer {number}", bias, expected.biases[number], self.tolerance)
        if case.input_gradient:
            input_gradient = None if answer.input is None else answer.input[:, agreeing]
            compare_gradient(finding, "input", input_gradient, expected.input[:, agreeing], self.tolerance)

    def _close(
        self, layers: list[tuple[Array, Array]], inputs: Array, traces: list[reference.Trace]
    ) -> NDArray[np.bool_]:
        """Where [T, B] a potential of any layer is within the reach of rounding of the threshold."""
        close = np.zeros(inputs.shape[:2], bool)
        for (weight, bias), trace in zip(layers, traces, strict=True):
            terms = np.abs(inputs) @ np.abs(weight).T + np.abs(bias)
            reach = of_sums(terms, self.rule, self.case.dtype)
            margin = of_potentials(trace, self.rule, self.case.dtype, inputs @ weight.T + bias, reach)
            close |= (self.rule.distance(trace.potential) <= margin).any(2)
            inputs = trace.spikes
        return close

    def _limit(self, finding: Finding, differs: NDArray[np.bool_]) -> None:
        """In full precision explained differences must also be rare; in formats with fewer digits they are not."""
        allowed, count = allowed_differences(differs.size), int(differs.sum())
        if product_format(self.case) in ("float32", "float64") and count > allowed and finding.correct:
            finding.complaints.append(
                f"{count} of {differs.size} spikes differ, {allowed} allowed; the first at {finding.first_wrong}"
            )

    def _guard(self, finding: Finding) -> None:
        low, high = RATE_WINDOW
        if not low <= finding.rate <= high * self.rule.most_spikes:
            finding.complaints.append(f"{finding.rate:.3g} spikes per step, outside the window {low} to {high}")


def _sampled(size: int, count: int, seed: int) -> NDArray[np.intp]:
    """`count` different numbers below `size`, sorted; with more than one, the first and the last among them."""
    if count >= size:
        return np.arange(size)
    generator = np.random.Generator(np.random.Philox(seed))
    if count == 1:
        return generator.integers(0, size, 1).astype(np.intp)
    inner = 1 + generator.choice(size - 2, count - 2, replace=False)
    return np.sort(np.concatenate([[0], inner, [size - 1]])).astype(np.intp)


def _slices(size: int) -> list[slice]:
    return [slice(start, min(size, start + ROWS_AT_ONCE)) for start in range(0, size, ROWS_AT_ONCE)]
