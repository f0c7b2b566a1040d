"""Backward passes that compute the forward pass again: rounding may decide a spike otherwise in that second run.

A program that saves the state of every k-th step only runs the steps between anew for its gradient. A compiler may
fuse them in another way, and where rounding decides a spike, the second run may have the other one. Until the next
saved state its potentials then differ, and its gradient is that of this run. Such a gradient is compared with the
reference of the run that it is nearest to, for any next saved state, and only at spikes within the reach of rounding.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import reference
from snnbench.cases.rule import Rule
from snnbench.cases.trace import Trace
from snnbench.proof.jumps import Jump

Array = NDArray[np.float64]
MOST = 16
"""Spikes of a part that are run otherwise, at most. If rounding decides more, the tolerances already say so."""


def reruns(
    trace: Trace, near: NDArray[np.bool_], current: Array, gradient: Array, cotangent: Array, rule: Rule
) -> Iterator[list[Jump]]:
    """For each spike that rounding decides (`near`), the changes of dL/d(current) of runs with the other spike there.

    All arrays are [T, b, n]; `trace` is that of `current`, and `gradient` is dL/d(current) for the `cotangent`.
    """
    places = list(zip(*np.nonzero(near), strict=True))
    for t, b, n in places if len(places) <= MOST else ():
        column = [array[:, b, n] for array in (trace.potential, trace.spikes, trace.decayed)]
        spikes = column[1].copy()
        spikes[t] = _other(float(column[0][t]), float(spikes[t]), rule)
        spikes[t + 1 :] = np.nan
        second = reference.forward(current[:, b, n], rule.at(n), forced=spikes)
        until = np.arange(len(spikes))[:, None] <= np.arange(t, len(spikes))[None]
        mixed = (
            np.where(until, rerun[:, None], first[:, None])
            for rerun, first in zip((second.potential, second.spikes, second.decayed), column, strict=True)
        )
        arriving = np.broadcast_to(cotangent[:, b, n, None], until.shape)
        other = reference.backward(arriving, Trace(*mixed), rule.at(n))
        yield [Jump(int(b), int(n), change) for change in (other - gradient[:, b, n, None]).T]


def nearest(expected: Array, got: NDArray[Any], changes: Iterable[tuple[Any, Array]]) -> Array:
    """`expected` with the one of these changes (index, values) that brings it nearest to `got`, if any does."""
    most, best = 0.0, None
    for index, values in changes:
        missing = np.asarray(got[index], np.float64) - expected[index]
        gain = float(2 * np.vdot(missing, values) - np.vdot(values, values))
        if gain > most:
            most, best = gain, (index, values)
    if best is None:
        return expected
    result = expected.copy()
    result[best[0]] += best[1]
    return result


def _other(potential: float, spikes: float, rule: Rule) -> float:
    """The number of spikes on the other side of the threshold that is nearest to this potential."""
    if rule.most_spikes == 1:
        return 1.0 - spikes
    edge = float(np.clip(np.round(potential / rule.threshold), 1, rule.most_spikes))
    return edge - 1 if spikes >= edge else edge
