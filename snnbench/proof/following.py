"""The reference on a sample of one input, with the resets of an answer's spikes.

Such a reference judges each spike by itself, and its gradients are those of the answer's own spike train. It depends
only on the spikes, so it is kept for the next answer. The reach of rounding is computed only where it is needed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import reference
from snnbench.cases.case import Case
from snnbench.cases.rule import Rule
from snnbench.cases.surrogate import JUMPS
from snnbench.cases.trace import Trace
from snnbench.proof import amplification
from snnbench.proof.jumps import FARTHEST, MOST_IN_16_BITS, Jump, count_within, jumps, near_jumps
from snnbench.proof.reruns import reruns
from snnbench.proof.sample import FirstLayer, Sample, Source
from snnbench.proof.tolerance import expected_differences, of_chance, of_potentials, round_to

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a case: its currents in float64 from `source`, and the `cotangent` [T, B, N] of its spikes.

    With `recurrent` weights [N, N] the source has the answer's own spikes, and a sample with gradients has all neurons.
    """

    case: Case
    rule: Rule
    source: Source
    cotangent: NDArray[np.float32]
    recurrent: Array | None = None

    def cotangent_of(self, sample: Sample) -> Array:
        """The cotangent [T, b, n] of a sample, rounded as the case's numbers are."""
        return round_to(self.cotangent[:, sample.batch[:, None], sample.neurons], self.case.dtype)


class Followed:
    """The reference on a `sample` with the resets of `spikes` [T, b, n]; gradients are computed when first needed."""

    def __init__(self, given: Input, sample: Sample, spikes: Array) -> None:
        self.given, self.sample, self.spikes = given, sample, spikes
        self.rule = given.rule.at(sample.neurons)
        self.trace = reference.forward(sample.current, self.rule, forced=spikes)
        self._weight: Array | None = None

    @cached_property
    def gradient(self) -> Array:
        """dL/d(current) [T, b, n]."""
        given = self.given
        return reference.backward(given.cotangent_of(self.sample), self.trace, self.rule, recurrent=given.recurrent)

    def weight_gradient(self, linear: FirstLayer) -> Array:
        """The rows [n, N] of the linear layer's weight gradient, if the sample has the whole batch."""
        if self._weight is None:
            self._weight = linear.weight_gradient(self.gradient)
        return self._weight

    @cached_property
    def errors(self) -> list[Array]:
        """The errors of `gradient` by rounding, in several runs."""
        given, of = self.given, self.sample
        arriving = given.cotangent_of(of)
        return list(amplification.errors(of.current, self.trace, arriving, self.rule, given.case, given.recurrent))

    @cached_property
    def input_gradient(self) -> Array:
        """dL/d(input) of the sample."""
        return self.given.source.input_gradient(self.gradient)

    @cached_property
    def jumps(self) -> list[Jump]:
        """The steps at which rounding decides on the side of the surrogate's jump.

        In 16 bits these may be many. Then they are left to the tolerance, for which rounding crosses jumps at random.
        """
        rule, case = self.rule, self.given.case
        if rule.surrogate not in JUMPS:
            return []
        near = near_jumps(self.trace, rule) if case.is_exact_format else np.ones(self.spikes.shape, bool)
        if not near.any():
            return []
        margin = np.where(near, self.margin(near), -1.0)
        if not case.is_exact_format and count_within(self.trace, margin, rule) > MOST_IN_16_BITS:
            return []
        return jumps(self.trace, margin, self.gradient, self.given.cotangent_of(self.sample), rule)

    @cached_property
    def reruns(self) -> list[list[Jump]]:
        """The runs with another spike at the steps where rounding decides it, step by step.

        None with recurrence, where another spike changes all neurons.
        """
        if self.given.recurrent is not None:
            return []
        rule = self.rule
        near = rule.distance(self.trace.potential) <= FARTHEST * rule.threshold
        near &= rule.distance(self.trace.potential) <= self.margin(near)
        cotangent = self.given.cotangent_of(self.sample)
        return list(reruns(self.trace, near, self.sample.current, self.gradient, cotangent, rule))

    @cached_property
    def expected_differences(self) -> float:
        """How many spikes rounding moves, on average."""
        rule, case = self.rule, self.given.case
        summing = of_chance(rule.gain * self.sample.current, case) if case.is_exact_format else 0.0
        return expected_differences(self.trace, rule, case.dtype, summing)

    def margin(self, where: NDArray[np.bool_]) -> Array | float:
        """How far rounding may have moved each potential [T, b, n]; 0 for neurons without a step in `where`."""
        b, n = np.nonzero(where.any(0))
        if not len(b):
            return 0.0
        columns = (slice(None), b, n)
        sample, rule = self.sample, self.rule.at(n)
        _, summing = self.given.source.columns(sample.batch[b], sample.neurons[n])
        trace = Trace(*(a[columns] for a in (self.trace.potential, self.trace.spikes, self.trace.decayed)))
        margin = np.zeros_like(sample.current)
        margin[columns] = of_potentials(trace, rule, self.given.case.dtype, sample.current[columns], summing)
        return margin
