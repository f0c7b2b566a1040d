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
from snnbench.case import Case
from snnbench.inputs import Layer, Problem
from snnbench.verify import (
    RATE_WINDOW,
    UNIT_ROUNDOFF,
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
CLOSE_ROUNDOFFS = 32
"""How many roundings of the summed terms may separate a potential from the threshold where a spike differs."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A [T, b, n] part of the case: which samples, which neurons, and their current and its rounding margin."""

    batch: NDArray[np.intp]
    neurons: NDArray[np.intp]
    current: Array
    margin: Array


def round_to(array: NDArray[np.float32], number_format: str) -> Array:
    """`array` rounded to the nearest (ties to even) number with the significand of `number_format`, as float64."""
    if number_format in ("float32", "float64"):
        return array.astype(np.float64)
    if number_format == "float16":
        return array.astype(np.float16).astype(np.float64)
    dropped = {"tf32": 13, "bfloat16": 16}[number_format]
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    half = np.uint32((1 << (dropped - 1)) - 1) + ((bits >> np.uint32(dropped)) & np.uint32(1))
    return ((bits + half) >> np.uint32(dropped) << np.uint32(dropped)).view(np.float32).astype(np.float64)


class SpotCheck:
    """The reference of one numbered input of a problem; `check` compares a pass's answer with it."""

    def __init__(self, problem: Problem, which: int) -> None:
        self.case = problem.case
        self.layers: list[Layer] = problem.layers()
        self.inputs = problem.input(which)
        self.cotangent = round_to(problem.cotangent(which), self.case.dtype)
        self.tolerance = gradient_tolerance(self.case)

    def check(self, answer: Answer) -> Finding:
        """Compare what `answer` holds: spikes, gradients, or both (gradients need the spikes they belong to)."""
        finding = Finding()
        if answer.spikes is None:
            finding.complaints.append("no spikes")
        elif answer.spikes.shape != self.inputs.shape:
            compare_spikes(finding, answer.spikes, self.inputs, self.inputs, self.case)
        elif self.case.layers == 1:
            self._few_neurons(finding, answer, answer.spikes)
            if finding.correct:
                self._one_sample(finding, answer, answer.spikes)
        else:
            self._whole(finding, answer, answer.spikes)
        if finding.correct:
            self._guard(finding)
        return finding

    def _few_neurons(self, finding: Finding, answer: Answer, spikes: NDArray[np.generic]) -> None:
        case = self.case
        neurons = _sampled(case.neurons, SAMPLED_NEURONS, case.seed)
        sample = self._sample(np.arange(case.batch), neurons)
        got = np.asarray(spikes[:, :, neurons], np.float64)
        trace = self._compare(finding, sample, got)
        if answer.weights is None or answer.biases is None or finding.complaints:
            return
        gradient = reference.backward(self.cotangent[:, :, neurons], trace, case)
        expected = sum(np.tensordot(gradient[t], self.inputs[t].astype(np.float64), (0, 0)) for t in range(len(got)))
        weights, biases = np.asarray(answer.weights[0]), np.asarray(answer.biases[0])
        if weights.shape != self.layers[0][0].shape:
            compare_gradient(finding, "weight", weights, np.empty(self.layers[0][0].shape), self.tolerance)
            return
        compare_gradient(finding, "weight", weights[neurons], np.asarray(expected), self.tolerance)
        compare_gradient(finding, "bias", biases[neurons], gradient.sum((0, 1)), self.tolerance)

    def _one_sample(self, finding: Finding, answer: Answer, spikes: NDArray[np.generic]) -> None:
        case = self.case
        batch = _sampled(case.batch, 1, case.seed)
        sample = self._sample(batch, np.arange(case.neurons))
        trace = self._compare(finding, sample, np.asarray(spikes[:, batch], np.float64))
        if answer.weights is None or not case.input_gradient or finding.complaints:
            return
        gradient = reference.backward(self.cotangent[:, batch], trace, case)
        weight = self.layers[0][0]
        expected = np.zeros_like(gradient)
        for rows in _slices(case.neurons):
            expected += gradient[:, :, rows] @ round_to(weight[rows], product_format(case))
        got = answer.input
        compare_gradient(finding, "input", None if got is None else got[:, batch], expected, self.tolerance)

    def _sample(self, batch: NDArray[np.intp], neurons: NDArray[np.intp]) -> Sample:
        """The current of these neurons for these samples, and how far rounding may move the potential."""
        case = self.case
        weight, bias = self.layers[0]
        current = np.empty((case.time_steps, len(batch), len(neurons)))
        terms = np.empty_like(current)
        for part in _slices(len(neurons)):
            chosen = round_to(weight[neurons[part]], product_format(case)).T
            offset = round_to(bias[neurons[part]], case.dtype)
            for t in range(case.time_steps):
                entering = self.inputs[t, batch].astype(np.float64)
                current[t, :, part] = entering @ chosen + offset
                terms[t, :, part] = entering @ np.abs(chosen) + np.abs(offset)
        return Sample(batch, neurons, current, self._summing(terms))

    def _compare(self, finding: Finding, sample: Sample, got: Array) -> reference.Trace:
        case = self.case
        trace = reference.forward(sample.current, case, forced=got)
        expected = (trace.potential >= case.threshold).astype(np.float64)
        margin = sample.margin + rounding_margin(trace, case)
        differs = compare_spikes(finding, got, expected, trace.potential, case, margin, (sample.batch, sample.neurons))
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
        layers = [(round_to(w, fmt), round_to(b, case.dtype)) for w, b in self.layers]
        inputs, got = self.inputs.astype(np.float64), np.asarray(spikes, np.float64)
        traces = reference.network_forward(layers, inputs, case)
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
        compare_spikes(finding, got[:, judged], traces[-1].spikes[:, judged], traces[-1].potential[:, judged], case)
        finding.differing = int((got != traces[-1].spikes).sum())
        if answer.weights is None or answer.biases is None or finding.complaints:
            return
        expected = reference.network_backward(layers, inputs, traces, self.cotangent, case)
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
        case = self.case
        close = np.zeros(inputs.shape[:2], bool)
        for (weight, bias), trace in zip(layers, traces, strict=True):
            terms = inputs @ np.abs(weight).T + np.abs(bias)
            margin = self._summing(terms) + rounding_margin(trace, case)
            close |= (np.abs(trace.potential - case.threshold) <= margin).any(2)
            inputs = trace.spikes
        return close

    def _summing(self, terms: Array) -> Array:
        """How far summing `terms` of this total size, in whatever order, may move a current."""
        unit = UNIT_ROUNDOFF["float64" if self.case.dtype == "float64" else "float32"]
        return CLOSE_ROUNDOFFS * unit * (self.case.threshold + terms)

    def _limit(self, finding: Finding, differs: NDArray[np.bool_]) -> None:
        """In full precision explained differences must also be rare; in formats with fewer digits they are not."""
        allowed, count = allowed_differences(differs.size), int(differs.sum())
        if product_format(self.case) in ("float32", "float64") and count > allowed and finding.correct:
            finding.complaints.append(
                f"{count} of {differs.size} spikes differ, {allowed} allowed; the first at {finding.first_wrong}"
            )

    def _guard(self, finding: Finding) -> None:
        low, high = RATE_WINDOW
        if not low <= finding.rate <= high:
            finding.complaints.append(f"{finding.rate:.3g} spikes per step, outside the window {low} to {high}")


def rounding_margin(trace: reference.Trace, case: Case) -> Array:
    """How far rounding of the state, one rounding an operation, may have moved each potential [T, ...].

    e_u[t] = beta * e_v[t-1] + u * (|beta * v| + |x| + |u|) and e_v = e_u + u * |v|, with u of the case's dtype:
    a running error bound (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3).
    """
    unit = UNIT_ROUNDOFF[case.dtype]
    margin = np.empty_like(trace.potential)
    carried = np.zeros(trace.potential.shape[1:])
    for t, (u, decayed) in enumerate(zip(trace.potential, trace.decayed, strict=True)):
        margin[t] = carried + unit * (np.abs(decayed) + np.abs(u - decayed) + np.abs(u))
        kept = 1.0 if case.reset == "subtract" else 1.0 - trace.spikes[t]
        carried = case.beta * (margin[t] + unit * np.abs(u)) * kept
    return margin


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
