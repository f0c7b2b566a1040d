"""Surrogates that jump: the steps at which rounding decides on which side of a jump a potential lies.

A rectangle is 1 within half of 1 around the threshold and 0 elsewhere. A right answer in float32 may see a potential on
the other side of the edge than the reference in float64. Its gradient then differs by much more than rounding. It is
compared with the reference on the side that it is nearer to, at such steps only: those within the reach of rounding.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import reference
from snnbench.cases.rule import Rule
from snnbench.cases.surrogate import JUMPS
from snnbench.cases.trace import Trace

Array = NDArray[np.float64]
FARTHEST = 1e-4
"""Only steps nearer to a jump than this share of the threshold are examined. The reach of rounding is shorter, unless
the potential hardly decays."""
MOST_IN_16_BITS = 64
"""Steps near a jump that are judged one by one in 16 bits, at most."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A step of the neuron at [`sample`, `neuron`] of a compared part [T, b, n] that may lie on either side of a jump.

    `change` [T] is dL/d(current) of this neuron on the other side, less that on the reference's side.
    """

    sample: int
    neuron: int
    change: Array


def near_jumps(trace: Trace, rule: Rule) -> NDArray[np.bool_]:
    """[T, b, n]: the steps whose potential may be so close to a jump of the surrogate that rounding decides."""
    return _off(trace, rule) <= FARTHEST * rule.threshold


def count_within(trace: Trace, margin: Array, rule: Rule) -> int:
    """The number of steps within `margin` [T, b, n] of a jump."""
    return int((_off(trace, rule) <= margin).sum())


def jumps(trace: Trace, margin: Array, gradient: Array, cotangent: Array, rule: Rule) -> list[Jump]:
    """Every step within `margin` of a jump, where rounding may have moved the potential by as much.

    All arrays are [T, b, n]; `gradient` is dL/d(current) for the `cotangent` of the spikes.
    """
    changes = []
    for t, b, n in zip(*np.nonzero(_off(trace, rule) <= margin), strict=True):
        column = Trace(*(array[:, b, n] for array in (trace.potential, trace.spikes, trace.decayed)))
        slopes = reference.slopes(column, rule)
        slopes[t] = _beyond(column.potential[t] - rule.threshold, slopes[t], rule)
        other = reference.backward(cotangent[:, b, n], column, rule.at(n), slopes)
        changes.append(Jump(int(b), int(n), other - gradient[:, b, n]))
    return changes


def settled(expected: Array, got: NDArray[Any] | None, changes: Iterable[tuple[Any, Array]]) -> Array:
    """`expected` with each change (index, values) that brings it nearer to `got`."""
    if got is None or got.shape != expected.shape:
        return expected
    result = expected
    for index, values in changes:
        missing = np.asarray(got[index], np.float64) - result[index]
        if np.vdot(missing, values) > 0.5 * np.vdot(values, values):
            result = result.copy() if result is expected else result
            result[index] += values
    return result


def _off(trace: Trace, rule: Rule) -> Array:
    """How far each potential is from the nearest jump, [T, b, n]; infinite if the surrogate has none."""
    distance = trace.potential - rule.threshold
    off = np.full(distance.shape, np.inf)
    for jump in JUMPS.get(rule.surrogate, ()):
        np.minimum(off, np.abs(distance - jump / rule.slope), out=off)
    return off


def _beyond(distance: float, slope: float, rule: Rule) -> float:
    """The slope on the other side of the jump that is nearest to `distance`."""
    edge = min((jump / rule.slope for jump in JUMPS[rule.surrogate]), key=lambda at: abs(distance - at))
    step = 2 * FARTHEST * rule.threshold
    sides = [reference.slope_at(edge + side * step, rule) for side in (-1, 1)]
    return float(max(sides, key=lambda other: abs(other - slope)))
