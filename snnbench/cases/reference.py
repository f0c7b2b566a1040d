"""The reference: the neuron of rule.py and its backpropagation through time, in NumPy, float64.

Time is the first axis of every array; the others are free, because neurons are independent given their input current.

    backward, from the last step to the first, gs = dL/ds, gv = dL/dv[t] and gi = dL/di[t]:
    subtract: gu = (gs - reset_by * gv) * sg + gv          zero: gu = (gs - u * gv) * sg + gv * (0 where s > 0)
    none:     gu = gs * sg + gv
    gv = beta * gu; gi = gu + synapse * gi[t+1], or 0 where the neuron is refractory; dL/dx[t] = gain * gi
    detach_reset drops the second term of the bracket. Before the first step of a chunk whose gradient is cut, gv and gi
    become 0. In a recurrent layer gs includes R^T dL/dx[t+1] (recurrence.py).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import constants, recurrence
from snnbench.cases.case import Case
from snnbench.cases.rule import Rule, rule_of
from snnbench.cases.surrogate import FORMULAS
from snnbench.cases.trace import Trace

Array = NDArray[np.float64]
Neuron = Case | Rule


def forward(current: Array, neuron: Neuron, forced: Array | None = None, recurrent: Array | None = None) -> Trace:
    """Run the neuron over `current` [T, ...], with `recurrent` weights [N, N] over currents [T, B, N].

    With `forced` spikes [T, ...] the reset follows the forced spikes instead of the neuron's own, except where they are
    NaN. So one difference between two implementations is counted once and does not start another trajectory.
    """
    rule = rule_of(neuron)
    is_free = forced is not None and bool(np.isnan(forced).any())
    potential, spikes, decayed = np.empty_like(current), np.empty_like(current), np.empty_like(current)
    v = np.zeros(current.shape[1:])
    i: Array | float = 0.0
    for t, x in enumerate(current):
        if recurrent is not None and t:
            x = x + spikes[t - 1] @ recurrent.T
        i = rule.cut(rule.synapse * i + rule.gain * x)
        if rule.refractory:
            i = np.where(rule.refusing(spikes, t), 0.0, i)
        decayed[t] = rule.cut(rule.beta * v)
        potential[t] = u = decayed[t] + i
        s = rule.fired(u) if forced is None or is_free else forced[t]
        if is_free:
            s = np.where(np.isnan(forced[t]), s, forced[t])  # type: ignore[index]
        spikes[t] = s
        v = rule.after_reset(u, s)
    return Trace(potential, spikes, decayed)


def slope_at(distance: Any, rule: Rule) -> Any:
    """ds/du at a distance u - threshold: a number, or an array of any shape."""
    return rule.surrogate_gain * FORMULAS[rule.surrogate](distance, rule.slope, rule.threshold)


def slopes(trace: Trace, rule: Rule) -> Array:
    """ds/du at every step [T, ...]."""
    at_every_step: Array = slope_at(trace.potential - rule.threshold, rule)
    return at_every_step


def backward(
    cotangent: Array,
    trace: Trace,
    neuron: Neuron,
    given: Array | None = None,
    errors: Array | float = 0.0,
    recurrent: Array | None = None,
) -> Array:
    """dL/dx [T, ...] for dL/ds = `cotangent` [T, ...]; ds/du is that of the trace unless it is `given`.

    `errors` [T, ...] are added to dL/du of each step. With `recurrent` weights [N, N] all is [T, B, N].
    """
    rule = rule_of(neuron)
    through = slopes(trace, rule) if given is None else given
    gradient = np.empty_like(cotangent)
    off = np.broadcast_to(errors, cotangent.shape)
    gv, gi = np.zeros(cotangent.shape[1:]), np.zeros(cotangent.shape[1:])
    for t in range(len(cotangent) - 1, -1, -1):
        u, s = trace.potential[t], trace.spikes[t]
        gs = (
            cotangent[t] if recurrent is None or t + 1 == len(cotangent) else cotangent[t] + gradient[t + 1] @ recurrent
        )
        gu = (gs - rule.through_reset(u) * gv) * through[t] + gv * rule.kept_in_backward(s) + off[t]
        gi = gu + rule.synapse * gi
        if rule.refractory:
            gi = np.where(rule.refusing(trace.spikes, t), 0.0, gi)
        gradient[t] = rule.gain * gi
        gv = rule.beta * gu
        if rule.is_detached_before(t):
            gv, gi = np.zeros_like(gv), np.zeros_like(gi)
    return gradient


@dataclass(frozen=True, slots=True)
class Gradients:
    """dL/d(weight) [N, M] and dL/d(bias) [N] of every layer, and dL/d(input) [T, B, M].

    The weight of a recurrent layer is [N, M + N]. `constants` are those of the trained constants of the first layer,
    then of the next: [1], or [N] for one number a neuron. `sizes` are those of their terms (constants.size).
    """

    weights: list[Array]
    biases: list[Array]
    input: Array
    constants: list[Array] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)


def network_forward(
    weights: list[tuple[Array, Array]], inputs: Array, neuron: Neuron, forced: Array | None = None
) -> list[Trace]:
    """The whole network over `inputs` [T, B, N], a trace for every layer; `forced` spikes hold for the last one.

    Without weights the inputs are the currents of a single layer.
    """
    if not weights:
        return [forward(inputs, neuron, forced)]
    traces: list[Trace] = []
    for number, (weight, bias) in enumerate(weights):
        forward_weight, recurrent = recurrence.split(weight, inputs.shape[2])
        current = inputs @ forward_weight.T + bias
        traces.append(forward(current, neuron, forced if number == len(weights) - 1 else None, recurrent))
        inputs = traces[-1].spikes
    return traces


def network_backward(
    weights: list[tuple[Array, Array]], inputs: Array, traces: list[Trace], cotangent: Array, neuron: Neuron
) -> Gradients:
    """Gradients of sum(spikes * cotangent), cotangent [T, B, N], for the traces of network_forward."""
    if not weights:
        return Gradients([], [], backward(cotangent, traces[0], neuron))
    rule, trained = rule_of(neuron), list[Array]()  # the terms of each trained constant
    by_weight, by_bias = [], []
    for number in reversed(range(len(weights))):
        entering = traces[number - 1].spikes if number else inputs
        forward_weight, recurrent = recurrence.split(weights[number][0], entering.shape[2])
        current = backward(cotangent, traces[number], neuron, recurrent=recurrent)
        if recurrent is not None:
            entering = recurrence.beside_own(entering, traces[number].spikes)
        by_weight.append(np.tensordot(current, entering, ((0, 1), (0, 1))))
        by_bias.append(current.sum((0, 1)))
        trained = [constants.terms(name, current, traces[number], rule) for name in rule.trained] + trained
        cotangent = current @ forward_weight
    sums, sizes = [constants.summed(each, rule) for each in trained], list(map(constants.size, trained))
    return Gradients(by_weight[::-1], by_bias[::-1], cotangent, sums, sizes)
