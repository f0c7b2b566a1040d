"""The extent of a comparison: how many neurons and samples of a case are compared in a given time, and which."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.case import Case

FEWEST_NEURONS, FEWEST_SAMPLES = 32, 1
"""Compared at any cost."""
FEWEST_SPIKES = 4096
"""Compared at any cost by the neurons of a case of few steps and samples: a few spikes are all silent by chance."""
PLACE_NS = 250
"""Time to compare a spike with its share of gradients, on a CPU of 2020. It is a constant, so that a case is compared
to the same extent on every machine."""
FLOPS_PER_NS = 40
"""Speed of float64 products."""
PHASES = 4
PRODUCTS = 3
"""The current and the gradients of weight and input."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The compared part: so many neurons over the whole batch, and so many samples over all neurons.

    If both are all, everything is compared, and each place once.
    """

    neurons: int
    samples: int


def extent(case: Case, budget_ns: int) -> Extent:
    """The extent that fits into a process's budget: everything, which serves all phases, or a part for each phase.

    Half of a phase's share goes to neurons and half to samples; all goes to neurons if no product mixes them. Layers
    that are judged one by one share the budget, and the result is the extent of each layer. The gradient of a recurrent
    layer goes through all of its neurons, and that of a trained constant sums over them, so everything is compared.
    """
    place_ns = PLACE_NS + PRODUCTS * 2 * case.fan_in / FLOPS_PER_NS
    neuron_ns, sample_ns = case.time_steps * case.batch * place_ns, case.time_steps * case.neurons * place_ns
    if case.is_judged_by_layer:
        budget_ns //= case.sites
    elif case.sites > 1 or case.is_recurrent or case.trained_constants:
        return Extent(case.neurons, case.batch)
    if case.neurons * neuron_ns <= budget_ns:
        return Extent(case.neurons, case.batch)
    fewest = max(FEWEST_NEURONS, -(-FEWEST_SPIKES // (case.time_steps * case.batch)))
    if not case.fan_in:
        return Extent(min(case.neurons, max(fewest, int(budget_ns / PHASES / neuron_ns))), 0)
    half_ns = budget_ns / PHASES / 2
    neurons = max(fewest, int(half_ns / neuron_ns))
    samples = max(FEWEST_SAMPLES, int(half_ns / sample_ns))
    return Extent(min(neurons, case.neurons), min(samples, case.batch))


def sampled(size: int, count: int, seed: int) -> NDArray[np.intp]:
    """`count` different numbers below `size`, sorted; two or more include the first and the last."""
    if count >= size:
        return np.arange(size)
    generator = np.random.Generator(np.random.Philox(seed))
    if count <= 1:
        return generator.integers(0, size, count).astype(np.intp)
    inner = 1 + generator.choice(size - 2, count - 2, replace=False)
    return np.sort(np.concatenate([[0], inner, [size - 1]])).astype(np.intp)
