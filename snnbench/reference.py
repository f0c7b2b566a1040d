"""The reference: the neuron of case.py and its backpropagation through time, in NumPy, float64.

Time is the first axis of every array; the others are free, because neurons are independent given their input current.

    backward, from the last step to the first, gs = dL/ds and gv = dL/dv[t]:
    subtract: gu = (gs - threshold * gv) * sg + gv          zero: gu = (gs - u * gv) * sg + gv * (1 - s)
    dL/dx[t] = gu; gv = beta * gu.   detach_reset drops the second term of the bracket.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snnbench.case import Case
from snnbench.surrogate import FORMULAS

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trace:
    """Charged potentials u, fired spikes s and the potentials before charging (beta * v[t-1]), all [T, ...]."""

    potential: Array
    spikes: Array
    decayed: Array


def forward(current: Array, case: Case, forced: Array | None = None) -> Trace:
    """Run the neuron over `current` [T, ...].

    With `forced` spikes [T, ...] the reset follows those instead of the neuron's own, so that one difference between
    two implementations is counted once and does not turn into another trajectory.
    """
    potential, spikes, decayed = np.empty_like(current), np.empty_like(current), np.empty_like(current)
    v = np.zeros(current.shape[1:])
    for t, x in enumerate(current):
        decayed[t] = case.beta * v
        potential[t] = u = decayed[t] + x
        spikes[t] = s = (u >= case.threshold) if forced is None else forced[t]
        v = u - case.threshold * s if case.reset == "subtract" else u * (1.0 - s)
    return Trace(potential, spikes, decayed)


def backward(cotangent: Array, trace: Trace, case: Case) -> Array:
    """dL/dx [T, ...] for dL/ds = `cotangent` [T, ...]."""
    slopes = FORMULAS[case.surrogate](trace.potential - case.threshold, case.slope, case.threshold)
    gradient = np.empty_like(cotangent)
    gv = np.zeros(cotangent.shape[1:])
    for t in range(len(cotangent) - 1, -1, -1):
        u, s = trace.potential[t], trace.spikes[t]
        through_reset = 0.0 if case.detach_reset else (case.threshold if case.reset == "subtract" else u)
        kept = 1.0 if case.reset == "subtract" else 1.0 - s
        gradient[t] = gu = (cotangent[t] - through_reset * gv) * slopes[t] + gv * kept
        gv = case.beta * gu
    return gradient


@dataclass(frozen=True, slots=True)
class Gradients:
    """dL/d(weight) [N, N] and dL/d(bias) [N] of every layer, and dL/d(input) [T, B, N]."""

    weights: list[Array]
    biases: list[Array]
    input: Array


def network_forward(
    weights: list[tuple[Array, Array]], inputs: Array, case: Case, forced: Array | None = None
) -> list[Trace]:
    """The whole network over `inputs` [T, B, N], a trace for every layer; `forced` spikes hold for the last one."""
    traces: list[Trace] = []
    for number, (weight, bias) in enumerate(weights):
        current = inputs @ weight.T + bias
        traces.append(forward(current, case, forced if number == len(weights) - 1 else None))
        inputs = traces[-1].spikes
    return traces


def network_backward(
    weights: list[tuple[Array, Array]], inputs: Array, traces: list[Trace], cotangent: Array, case: Case
) -> Gradients:
    """Gradients of sum(spikes * cotangent), cotangent [T, B, N], for the traces of network_forward."""
    by_weight, by_bias = [], []
    for number in reversed(range(len(weights))):
        current = backward(cotangent, traces[number], case)
        entering = traces[number - 1].spikes if number else inputs
        by_weight.append(np.tensordot(current, entering, ((0, 1), (0, 1))))
        by_bias.append(current.sum((0, 1)))
        cotangent = current @ weights[number][0]
    return Gradients(by_weight[::-1], by_bias[::-1], cotangent)
