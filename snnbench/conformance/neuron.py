"""A neuron of NIR in float64, step by step, with a bound for the rounding of a library that computes in float32.

The documented equations of LIF are  tau dv/dt = (v_leak - v) + R I,  z = 1 if v > v_threshold,  v = v_reset if z = 1.
Forward Euler gives

    u[t] = v[t-1] + dt / tau * (v_leak - v[t-1] + R I[t])        z[t] = 1 if u[t] > v_threshold
    v[t] = v_reset if z[t] = 1, else u[t]

LI has no spikes: its output is v. CubaLIF is documented as "LI; Linear; LIF", with the synapse  tau_syn dI/dt = -I +
w_in S  as its first part. So its membrane takes the synapse's current of the same step, as a node behind a node does.
A neuron's own spikes come back to it one step later.
Docs: https://neuroir.org/docs/primitives.html, the table of primitives, as of nir 1.0.8
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from snnbench.conformance.conversion import coming_back
from snnbench.conformance.graph import INTEGRATING, SPIKING, Array, Node
from snnbench.conformance.interpretation import FIXED_DECAY, FIXED_STEP_S, Interpretation

EPSILON = float(np.finfo(np.float32).eps)
ROUNDINGS = 8
"""Roundings of a step in float32: dt, tau, their quotient, two products, two sums, and the scaling of a parameter."""


Signal = tuple[Array, Array]
"""Values, and the bounds of their errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The expected output of a step, [B, ...], and the difference that rounding allows.

    A spike may be missing or added, tolerance 1, if the potential is so near to the threshold that rounding decides.
    """

    output: Array
    tolerance: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Filter:
    """y[t] = remains * y[t-1] + gain * x[t] + added, with the bound of its error."""

    remains: Array
    gain: Array
    added: Array

    def step(self, y: Array, error: Array, x: Array, x_error: Array) -> tuple[Array, Array]:
        """The next y, and the bound of its error."""
        current = self.gain * x
        size = np.abs(y) + np.abs(current) + np.abs(self.added)
        grown = np.abs(self.remains) * error + np.abs(self.gain) * x_error + ROUNDINGS * EPSILON * size
        return self.remains * y + current + self.added, grown


def steps(
    node: Node, interpretation: Interpretation, dt: float, current: Array, error: Array, given: Array | None = None
) -> Iterator[Step]:
    """The output of a neuron for a current [T, B, ...] that a library knows up to `error`.

    The state is 0 before the first step, for NIR names no other one. If the spikes of a library are `given`, the reset
    follows them, so that each spike is judged by itself. `dt` is in seconds.
    """
    synapse, membrane = _filters(node, interpretation, dt)
    v = v_error = synaptic = synaptic_error = np.zeros(current.shape[1:])
    if interpretation.has("start", "leak"):
        v = v + node.parameters.get("v_leak", 0.0)
    fires = node.kind in SPIKING and not _is_absent(node, interpretation)
    late = interpretation.has("latency", "late")
    waiting = Step(np.zeros(current.shape[1:]), np.zeros(current.shape[1:]))
    pending = held = held_error = spikes = doubt = np.zeros(current.shape[1:])
    for t, (x, x_error) in enumerate(zip(current, error, strict=True)):
        if node.back is not None and not interpretation.has("back", "ignored"):
            returned, returned_error = _returned(node, node.back, spikes, doubt)
            x, x_error = x + returned, x_error + returned_error
        if synapse is not None:
            before = synaptic, synaptic_error
            synaptic, synaptic_error = synapse.step(synaptic, synaptic_error, x, x_error)
            x, x_error = before if interpretation.has("order", "before") else (synaptic, synaptic_error)
        u, u_error = membrane.step(v, v_error, x, x_error)
        u = u - pending
        if fires:
            answer = _fired(node, interpretation, u - held, u_error + held_error)
            number = t + late
            if given is None or number >= len(given):
                spikes, doubt = answer.output, answer.tolerance
            else:
                spikes = given[number]
            v, v_error, pending = _reset(node, interpretation, u, u_error, spikes)
            if interpretation.has("reset", "held"):
                left = _fired(node, interpretation, v, v_error)
                held, held_error = (part * node.parameters["v_threshold"] for part in (left.output, left.tolerance))
        else:
            answer = Step(u, u_error)
            v, v_error = u, u_error
        yield waiting if late else answer
        waiting = answer


def _returned(node: Node, back: Node, spikes: Array, doubt: Array) -> Signal:
    """The current [B, ...] that a neuron's spikes of the step before bring back, and the bound of its error."""
    shape = spikes.shape[1:]
    arrays = coming_back(node, back, shape)
    weight, bias = arrays["recurrent"].T, arrays.get("back", np.zeros(shape))
    flat, size = spikes.reshape(len(spikes), -1), np.abs(weight)
    rounding = (len(weight) + 1) * EPSILON * (np.abs(flat) @ size)
    bound = doubt.reshape(flat.shape) @ size + rounding
    return (flat @ weight).reshape(spikes.shape) + bias, bound.reshape(spikes.shape) + EPSILON * np.abs(bias)


def _is_absent(node: Node, interpretation: Interpretation) -> bool:
    """Whether the neurons are left out."""
    is_readout = node.kind in INTEGRATING and interpretation.has("readout", "absent")
    return is_readout or interpretation.has("decay", "absent")


def _filters(node: Node, interpretation: Interpretation, dt: float) -> tuple[_Filter | None, _Filter]:
    values = node.parameters
    r = values["r"]
    ones, nothing = np.ones_like(r), np.zeros_like(r)
    if _is_absent(node, interpretation):
        return None, _Filter(nothing, ones, nothing)
    if interpretation.has("step", "fixed"):
        dt = FIXED_STEP_S
    elif interpretation.has("step", "steps"):
        dt = 1.0
    elif interpretation.has("step", "product"):
        dt = dt * dt
    elif interpretation.has("step", "resistance"):
        dt = float(np.min(values.get("tau", values.get("tau_mem", dt)) / (1 + r)))
    tau = None if node.kind == "IF" else values.get("tau", values.get("tau_mem"))
    remains, charged = (ones, dt * ones) if tau is None else _decay(interpretation, dt, tau)
    if tau is None and interpretation.has("decay", "fixed"):
        remains = FIXED_DECAY * ones
    gain = (
        charged
        if interpretation.has("gain", "no-resistance")
        else ones
        if interpretation.has("gain", "unscaled")
        else charged * r
    )
    leak = values.get("v_leak", nothing)
    added = (
        nothing
        if interpretation.has("leak", "ignored")
        else leak
        if interpretation.has("leak", "bias")
        else charged * leak
    )
    if "tau_syn" not in values:
        return None, _Filter(remains, remains * gain if interpretation.has("entry", "decayed") else gain, added)
    of_synapse, charged = _decay(interpretation, dt, values["tau_syn"])
    is_unscaled = interpretation.has("gain", "unscaled") or interpretation.has("gain", "unscaled-synapse")
    entering = ones if is_unscaled else charged * values["w_in"]
    entering = of_synapse * entering if interpretation.has("entry", "decayed") else entering
    return _Filter(of_synapse, entering, nothing), _Filter(remains, gain, added)


def _decay(interpretation: Interpretation, dt: float, tau: Array) -> tuple[Array, Array]:
    """The share of a state that is left after a step, and the share by which it moves to its target."""
    ratio = dt / (np.trunc(tau) if interpretation.has("step", "whole") else tau)
    remains = np.exp(-ratio) if interpretation.has("decay", "exponential") else 1 - ratio
    return remains, 1 - remains


def _fired(node: Node, interpretation: Interpretation, u: Array, error: Array) -> Step:
    threshold = node.parameters["v_threshold"]
    margin = error + ROUNDINGS * EPSILON * np.abs(threshold)
    if interpretation.has("spikes", "several"):
        ratio = np.maximum(u / threshold, 0.0)
        distance = np.abs(ratio - np.maximum(np.round(ratio), 1.0)) * np.abs(threshold)
        return Step(np.floor(ratio), (distance <= margin).astype(np.float64))
    return Step((u > threshold).astype(np.float64), (np.abs(u - threshold) <= margin).astype(np.float64))


def _reset(
    node: Node, interpretation: Interpretation, u: Array, error: Array, spikes: Array
) -> tuple[Array, Array, Array]:
    """The potential after the reset, the bound of its error, and an amount to subtract in the next step."""
    subtracted = spikes * node.parameters["v_threshold"]
    grown = error + ROUNDINGS * EPSILON * np.abs(subtracted)
    nothing = np.zeros_like(u)
    if interpretation.has("reset", "none"):
        return u, error, nothing
    if interpretation.has("reset", "subtract") or interpretation.has("reset", "held"):
        return u - subtracted, grown, nothing
    if interpretation.has("reset", "late-subtract"):
        return u, grown, subtracted
    target = 0.0 if interpretation.has("reset", "zero") else node.parameters["v_reset"]
    fired = spikes > 0
    return np.where(fired, target, u), np.where(fired, EPSILON * np.abs(target), error), nothing
