"""Trained constants: the gradients of beta and of the threshold.

Both are linear in dL/d(current), for the potentials and spikes of a trace. With gu = dL/du:

    gu[t] = gi[t] - alpha * gi[t+1],  gi = dL/dx / gain
    dL/dbeta      = sum of gu[t] * v[t-1]
    dL/dthreshold = sum of beta * gu[t+1] * (1 - s[t]) - gu[t]         without a reset: of beta * gu[t+1] - gu[t]

The second holds for every reset, detached or not: a potential above the threshold keeps 1 - s of what a reset takes.
Sums go over steps and samples, and, if a layer has one number, over its neurons.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.rule import Rule
from snnbench.cases.trace import Trace

Array = NDArray[np.float64]


def terms(name: str, gradient: Array, trace: Trace, rule: Rule) -> Array:
    """The terms [T, ...] whose sum is the gradient of a constant, for dL/d(current) [T, ...]."""
    of_current = gradient / rule.gain
    of_potential = of_current - rule.synapse * _later(of_current)
    if name == "beta":
        after = [rule.after_reset(u, s) for u, s in zip(trace.potential, trace.spikes, strict=True)]
        before = np.stack([np.zeros_like(trace.potential[0]), *after[:-1]])
        of_beta: Array = of_potential * before
        return of_beta
    kept = 1.0 if rule.reset == "none" else 1.0 - trace.spikes
    of_threshold: Array = rule.beta * _later(of_potential) * kept - of_potential
    return of_threshold


def summed(of_terms: Array, rule: Rule) -> Array:
    """The gradient [N] or [1] of terms [T, B, N]."""
    gradient: Array = of_terms.sum((0, 1)) if rule.trained_each == "neuron" else of_terms.sum().reshape(1)
    return gradient


def gradients(gradient: Array, trace: Trace, rule: Rule) -> list[Array]:
    """The gradient [N] or [1] of each trained constant of a layer, for dL/d(current) [T, B, N]."""
    return [summed(terms(name, gradient, trace, rule), rule) for name in rule.trained]


def size(of_terms: Array) -> float:
    """The size of a sum of such terms if their signs were random: what its rounding is relative to."""
    return float(np.linalg.norm(of_terms))


def names(rule: Rule, layers: int) -> list[str]:
    """What the constants of a stack are called, in the order of their gradients."""
    return [name if layers == 1 else f"{name} of layer {number}" for number in range(layers) for name in rule.trained]


def _later(array: Any) -> Array:
    """The array one step later, and 0 at the end."""
    return np.concatenate([array[1:], np.zeros_like(array[:1])])
