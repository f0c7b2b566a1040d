"""Bootstrap intervals over trials. The trial is the replicate: repetitions within one process are not independent.

A *group* is the trials of one contender in one phase; each trial is a sequence of repetitions.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
"""Resamples of a bootstrap: the ends of its interval then move by a tenth of its width from seed to seed."""
MAX_VALUES_AT_ONCE = 2**22
"""Most values that a bootstrap holds at once: a few dozen MiB."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, in the unit of the value."""

    low: float
    high: float


def bootstrap(
    groups: Sequence[Sequence[Sequence[float]]],
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
) -> list[Interval]:
    """Percentile intervals of the median of trial medians, one per group, from a two-level bootstrap.

    A resample draws as many trials as the group has, with replacement, then as many repetitions as each of them has.
    The draw depends only on the seed and the shape of the group. The interval of a single trial covers its repetitions
    alone; it lacks the spread between processes and is too narrow by an unknown amount. Raises ValueError if a group or
    a trial is empty.

    Davison & Hinkley 1997, section 3.8: resampling of hierarchical data, with replacement at both stages.
    """
    shapes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        shape = tuple(len(trial) for trial in group)
        if not shape or not min(shape):
            raise ValueError(f"group {number} has no trials, or one of them no repetitions")
        shapes[shape].append(number)
    intervals = [Interval(0.0, 0.0)] * len(groups)
    tails = (0.5 - confidence / 2, 0.5 + confidence / 2)
    for shape, numbers in shapes.items():
        draw = _draw(shape, seed, resamples)
        together = max(1, MAX_VALUES_AT_ONCE // (resamples * len(shape)))
        for start in range(0, len(numbers), together):
            chosen = numbers[start : start + together]
            lows, highs = np.quantile(_medians([groups[number] for number in chosen], draw), tails, axis=1)
            for number, low, high in zip(chosen, lows.tolist(), highs.tolist(), strict=True):
                intervals[number] = Interval(low, high)
    return intervals


Draw = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Positions of the two middle values of each resampled trial, each [resamples, trials]. They index all repetitions,
sorted within each trial, with the trials laid end to end."""


def _draw(shape: tuple[int, ...], seed: int, resamples: int) -> Draw:
    """Positions of the middle values, drawn for groups of this shape (the number of repetitions of each trial).

    In sorted values, the median of drawn values is the value at the median of the drawn positions. So positions are
    drawn once for all groups of a shape, and no value is sorted again.
    """
    trials = np.random.default_rng([seed, len(shape)]).integers(len(shape), size=(resamples, len(shape)))
    starts = np.cumsum([0, *shape[:-1]])
    middles = np.empty((2, *trials.shape), np.intp)
    for trial, repetitions in enumerate(shape):
        here = trials == trial
        middles[:, here] = starts[trial] + _middles(repetitions, len(shape), seed, resamples)[:, here]
    return middles[0], middles[1]


@lru_cache(maxsize=256)
def _middles(repetitions: int, trials: int, seed: int, resamples: int) -> NDArray[np.intp]:
    """[2, resamples, trials]: lower and upper middle of `repetitions` positions, with replacement; equal if odd."""
    indices = np.random.default_rng([seed, trials, repetitions]).integers(
        repetitions, size=(resamples, trials, repetitions)
    )
    middles = sorted({(repetitions - 1) // 2, repetitions // 2})
    indices = np.partition(indices, middles, axis=-1)
    return np.stack([indices[..., middles[0]], indices[..., middles[-1]]])


def _medians(groups: Sequence[Sequence[Sequence[float]]], draw: Draw) -> NDArray[Any]:
    """[groups, resamples]: the median of trial medians in each resample; all groups have the shape of the draw."""
    sorted_values = np.array([[value for trial in group for value in sorted(trial)] for group in groups], dtype=float)
    lower, upper = draw
    medians = (sorted_values[:, lower] + sorted_values[:, upper]) / 2
    return np.asarray(np.median(medians, axis=-1, overwrite_input=True))
