"""A sample of a case: the input currents of some neurons for some samples of the batch.

If the input is spikes, a current is a sum of float32 weights. Float64 has 29 bits more than a weight, so such a sum is
exact, in any order and in blocks of any size, unless a weight is 2^29 times smaller than the sum.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.case import Case
from snnbench.cases.problem import Layer
from snnbench.cases.rule import Rule
from snnbench.proof.jumps import Jump
from snnbench.proof.tolerance import of_sums, round_to

Array = NDArray[np.float64]
ENTRIES_AT_ONCE = 1 << 22
"""Numbers of the input in float64 at once: 32 MiB."""
NEURONS_AT_ONCE = 1024
"""Rows of the weight in float64 at once: 128 MiB at N = 16384."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A [T, b, n] part of the case: the numbers of its samples and neurons, and their current."""

    batch: NDArray[np.intp]
    neurons: NDArray[np.intp]
    current: Array

    @property
    def positions(self) -> int:
        """The number of spikes in the sample."""
        return self.current.size


@dataclass(frozen=True, slots=True)
class GivenCurrents:
    """Currents that are the `inputs` [T, B, N] themselves."""

    inputs: NDArray[np.float32]
    case: Case
    rule: Rule

    def draw(self, batch: NDArray[np.intp], neurons: NDArray[np.intp]) -> Sample:
        """The sample of these neurons and samples of the batch."""
        return Sample(batch, neurons, self.inputs[:, batch[:, None], neurons].astype(np.float64))

    def columns(self, batch: NDArray[np.intp], neurons: NDArray[np.intp]) -> tuple[Array, Array]:
        """The currents [T, k] of k pairs; a library's own unit of current may round each."""
        current = self.inputs[:, batch, neurons].astype(np.float64)
        return current, of_sums(np.abs(current), self.rule, self.case)

    def input_gradient(self, gradient: Array) -> Array:
        """The gradient of the current itself."""
        return gradient

    def input_change(self, sample: Sample, jump: Jump) -> tuple[Any, Array]:
        """The change of the current's gradient, at the neuron itself."""
        return (slice(None), jump.sample, jump.neuron), jump.change


@dataclass(frozen=True, slots=True)
class FirstLayer:
    """Currents from a linear layer: its weight and bias, its `inputs` [T, B, N], and the rule of its neurons.

    The inputs of a recurrent layer have its own spikes beside what enters (cases/recurrence.py).
    """

    layer: Layer
    inputs: NDArray[np.float32]
    case: Case
    rule: Rule

    def draw(self, batch: NDArray[np.intp], neurons: NDArray[np.intp]) -> Sample:
        """The sample of these neurons and samples of the batch.

        A weight is rounded once; products run over many time steps at once.
        """
        case, inputs = self.case, self.inputs
        current = np.empty((case.time_steps, len(batch), len(neurons)))
        of_batch = inputs if np.array_equal(batch, np.arange(case.batch)) else inputs[:, batch]
        for part in weight_slices(len(neurons)):
            chosen, offset = self._rounded(neurons[part])
            for steps in blocks(case.time_steps, len(batch) * inputs.shape[2]):
                entering = of_batch[steps].reshape(-1, inputs.shape[2]).astype(np.float64)
                current[steps, :, part] = (entering @ chosen + offset).reshape(-1, len(batch), len(offset))
        return Sample(batch, neurons, current)

    def columns(self, batch: NDArray[np.intp], neurons: NDArray[np.intp]) -> tuple[Array, Array]:
        """The current [T, k] of k (sample, neuron) pairs, and how far rounding may move it."""
        current = np.empty((self.case.time_steps, len(batch)))
        terms = np.empty_like(current)
        for b in np.unique(batch):
            entering = self.inputs[:, b].astype(np.float64)
            of_sample = np.nonzero(batch == b)[0]
            for part in weight_slices(len(of_sample)):
                where = of_sample[part]
                chosen, offset = self._rounded(neurons[where])
                current[:, where] = entering @ chosen + offset
                terms[:, where] = np.abs(entering) @ np.abs(chosen) + np.abs(offset)
        return current, of_sums(terms, self.rule, self.case)

    def weight_gradient(self, gradient: Array) -> Array:
        """Rows [n, N] of the weight gradient for gradients of the current [T, B, n]."""
        case, width = self.case, self.inputs.shape[2]
        total = np.zeros((gradient.shape[2], width))
        for steps in blocks(case.time_steps, case.batch * width):
            entering = self.inputs[steps].reshape(-1, width).astype(np.float64)
            total += gradient[steps].reshape(len(entering), -1).T @ entering
        return total

    def input_gradient(self, gradient: Array) -> Array:
        """dL/d(input) [T, b, N] for gradients of the current [T, b, N] of all neurons."""
        rows = gradient.reshape(-1, gradient.shape[2])
        total = np.zeros((len(rows), self.case.entering))
        for part in weight_slices(self.case.neurons):
            chosen = round_to(self.layer[0][part, : self.case.entering], self.case.product_format)
            total += rows[:, part] @ self.rule.weights(chosen)
        return total.reshape(*gradient.shape[:2], -1)

    def input_change(self, sample: Sample, jump: Jump) -> tuple[Any, Array]:
        """The change [T, N], at all inputs of the neuron."""
        weight, _ = self._rounded(sample.neurons[[jump.neuron]])
        return (slice(None), jump.sample), np.outer(jump.change, weight[:, 0])

    def weight_change(self, sample: Sample, jump: Jump) -> Array:
        """The change [N] of the neuron's row of the weight gradient."""
        change: Array = jump.change @ self.inputs[:, sample.batch[jump.sample]].astype(np.float64)
        return change

    def _rounded(self, neurons: NDArray[np.intp]) -> tuple[Array, Array]:
        """Weights [N, n] and biases [n] of these neurons, as the product and the rule round them."""
        weight, bias = self.layer
        chosen = self.rule.weights(round_to(weight[neurons], self.case.product_format)).T
        return chosen, round_to(bias[neurons], self.case.dtype)


Source = GivenCurrents | FirstLayer
"""Where the input currents of neurons come from, in float64."""


def blocks(time_steps: int, entries: int) -> list[slice]:
    """The time steps in blocks, for arrays with so many entries a step."""
    return _slices(time_steps, max(1, ENTRIES_AT_ONCE // entries))


def weight_slices(neurons: int) -> list[slice]:
    """The neurons in blocks, for weights in float64."""
    return _slices(neurons, NEURONS_AT_ONCE)


def _slices(size: int, at_once: int) -> list[slice]:
    return [slice(start, min(size, start + at_once)) for start in range(0, size, at_once)]
