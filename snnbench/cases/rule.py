"""A rule: a leaky integrate-and-fire neuron in numbers, general enough for the neurons of libraries.

    i[t] = cut(synapse * i[t-1] + gain * x[t])  0 in the `refractory` steps after a spike
    u[t] = cut(beta * v[t-1]) + i[t]
    s[t] = the whole part of u / threshold, at most `most_spikes`; 0 below the threshold
    v[t] = u[t] - reset_by * s[t]           reset = "subtract"
    v[t] = u[t], or 0 where s[t] > 0        reset = "zero"; or where u[t] >= resets_at, if that is given
    v[t] = u[t]                             reset = "none"
    ds/du = surrogate_gain * surrogate(u - threshold; slope)    backward only

x comes from weights rounded to the nearest multiple of `weight_step`, and `cut` truncates to a multiple of `unit`:
fixed point. The backward pass ignores roundings and cuts, and without `reset_in_backward` also the reset. With
`holds_removed` it takes the amount that a reset removes as a constant c: v[t] = u[t] - c * s[t], and c = u[t] to zero.

The neuron of a case is the rule with synapse = alpha, a gain of 1, at most one spike and reset_by = threshold. If a
library subtracts the reset one step later, after the decay, reset_by = threshold / beta: `resetting_after_decay`.

With `detach_every` K no gradient goes from a step whose number is a multiple of K to the state before it.

`trained` are the constants that have a gradient (constants.py), one number a layer or, if `trained_each` says so, one a
neuron.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.case import Case, Each, Reset, Surrogate

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The neuron's numbers, in the order of the equations: current, potential, spike, reset, backward pass, rounding.

    `reset_by` is the threshold if left out; a `unit` or `weight_step` of 0 rounds nothing.
    `beta` is an array [N] where each neuron of a layer has its own.
    `resets_at` is for a neuron that resets when it reaches a potential and fires only when it exceeds it.
    """

    synapse: float = 0.0
    gain: float = 1.0
    refractory: int = 0
    beta: Any  # a number or an array
    threshold: float
    most_spikes: int = 1
    reset: Reset
    reset_by: float | None = None
    resets_at: float | None = None
    detach_reset: bool
    reset_in_backward: bool = True
    holds_removed: bool = False
    surrogate: Surrogate
    slope: float
    surrogate_gain: float = 1.0
    unit: float = 0.0
    weight_step: float = 0.0
    detach_every: int = 0
    trained: tuple[str, ...] = ()
    trained_each: Each = "layer"

    def __post_init__(self) -> None:
        if self.unit and self.synapse:
            raise ValueError("a rule in fixed point has no synapse: how far rounding reaches there is not worked out")
        if self.resets_at is not None and (self.reset != "zero" or not self.unit):
            raise ValueError("resets_at is of a rule in fixed point that resets to zero")

    @property
    def taken_off(self) -> float:
        """The amount that a spike subtracts from the potential, for a reset that subtracts."""
        return self.threshold if self.reset_by is None else self.reset_by

    def resetting_after_decay(self) -> "Rule":
        """This rule with a reset that subtracts the threshold one step later, after the decay."""
        return replace(self, reset="subtract", reset_by=self.threshold / self.beta)

    def cut(self, values: Array) -> Array:
        """The values truncated towards zero, to multiples of `unit`."""
        return np.trunc(values / self.unit) * self.unit if self.unit else values

    def weights(self, given: Array) -> Array:
        """The weights rounded to multiples of `weight_step`, ties to even."""
        return np.round(given / self.weight_step) * self.weight_step if self.weight_step else given

    def at(self, neurons: Any) -> "Rule":
        """The rule of some neurons of a layer, whose decay may be an array [N]."""
        return replace(self, beta=self.beta[neurons]) if isinstance(self.beta, np.ndarray) else self

    def refusing(self, spikes: Array, t: int) -> NDArray[np.bool_]:
        """Which neurons take no current at step t, given the spikes [T, ...] before it."""
        return np.asarray((spikes[max(0, t - self.refractory) : t] > 0).any(0))

    def fired(self, u: Array) -> Array:
        """Spikes at the charged potentials u."""
        if self.most_spikes == 1:
            return (u >= self.threshold).astype(np.float64)
        return np.clip(np.floor(u / self.threshold), 0, self.most_spikes)

    def distance(self, u: Array) -> Array:
        """The distance of u to the nearest potential at which the number of spikes changes."""
        if self.most_spikes == 1:
            return np.abs(u - self.threshold)
        steps = np.clip(np.round(u / self.threshold), 1, self.most_spikes)
        return np.abs(u - steps * self.threshold)

    def possible(self, spikes: NDArray[np.generic]) -> NDArray[np.bool_]:
        """Which values are possible numbers of spikes."""
        numbers = np.asarray(spikes, np.float64)
        answer: NDArray[np.bool_] = (numbers >= 0) & (numbers <= self.most_spikes) & (numbers == np.floor(numbers))
        return answer

    def after_reset(self, u: Array, s: Array) -> Array:
        """The potential at the start of the next step."""
        match self.reset:
            case "subtract":
                return u - self.taken_off * s
            case "zero":
                reset = s > 0 if self.resets_at is None else (s > 0) | (u >= self.resets_at)
                return np.where(reset, 0.0, u)
            case "none":
                return u

    def is_detached_before(self, t: int) -> bool:
        """Whether no gradient goes from step t to the state before it."""
        return self.detach_every > 0 and t % self.detach_every == 0

    def share_kept(self, s: Array) -> Array | float:
        """The true dv/du at fixed spikes."""
        return np.where(s > 0, 0.0, 1.0) if self.reset == "zero" else 1.0

    def kept_in_backward(self, s: Array) -> Array | float:
        """dv/du at fixed spikes, as the backward pass uses it."""
        return self.share_kept(s) if self.reset_in_backward and not self.holds_removed else 1.0

    def through_reset(self, u: Array) -> Array | float:
        """-dv/ds, the factor of a gradient through the reset; 0 if the reset is detached."""
        if self.detach_reset or self.reset == "none" or not self.reset_in_backward:
            return 0.0
        return self.taken_off if self.reset == "subtract" else u


def rule_of(neuron: Case | Rule) -> Rule:
    """The rule of a case; a rule itself unchanged."""
    if isinstance(neuron, Rule):
        return neuron
    names = ("beta", "threshold", "reset", "detach_reset", "surrogate", "slope", "trained_each")
    numbers = {name: getattr(neuron, name) for name in names}
    detach_every = neuron.chunk_steps if neuron.cuts_gradient else 0
    return Rule(synapse=neuron.alpha, detach_every=detach_every, trained=neuron.trained_constants, **numbers)
