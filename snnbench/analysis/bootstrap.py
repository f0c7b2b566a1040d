"""Statistics over trials. The trial is the replicate: repetitions within one process are not independent.

A *group* is what was timed of one thing: trials, each a sequence of repetitions.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
"""Of a bootstrap: the ends of its interval then move by a tenth of its width from one seed to another."""
AT_ONCE = 2**22
"""Most values that a bootstrap holds at once: a few dozen MiB."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a value lies with the confidence asked for, in its unit."""

    low: float
    high: float


def bootstrap(
    groups: Sequence[Sequence[Sequence[float]]],
    seed: int,
    resamples: int = RESAMPLES,
    confidence: float = 0.95,
) -> list[Interval]:
    """Intervals of the median of trial medians, one a group, in two levels (percentiles).

    A resample draws as many trials as there are, with replacement, then from each as many repetitions as that has. What
    is drawn depends on the seed and the shape of a group only, not on the other groups. One trial says nothing of what
    other processes would have taken: its interval is that of its repetitions alone, too narrow by an unknown amount.
    Raises ValueError at a group or a trial that is empty.

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
        together = max(1, AT_ONCE // (resamples * len(shape)))
        for start in range(0, len(numbers), together):
            chosen = numbers[start : start + together]
            lows, highs = np.quantile(_medians([groups[number] for number in chosen], draw), tails, axis=1)
            for number, low, high in zip(chosen, lows.tolist(), highs.tolist(), strict=True):
                intervals[number] = Interval(low, high)
    return intervals


Draw = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Of each resampled trial, the places of its two middle values among all repetitions, sorted trial by trial, that are
laid end to end. Each [resamples, trials]."""


def _draw(shape: tuple[int, ...], seed: int, resamples: int) -> Draw:
    """Which values are the middle ones, drawn for groups with so many repetitions in each trial.

    The median of drawn values is the value at the median of drawn places, where values are sorted: so places are
    drawn, once for all groups of a shape, and no value need be sorted again.
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
    """[2, resamples, trials]: the lower and upper middle of so many places drawn with replacement; equal if odd."""
    indices = np.random.default_rng([seed, trials, repetitions]).integers(
        repetitions, size=(resamples, trials, repetitions)
    )
    middles = sorted({(repetitions - 1) // 2, repetitions // 2})
    indices = np.partition(indices, middles, axis=-1)
    return np.stack([indices[..., middles[0]], indices[..., middles[-1]]])


def _medians(groups: Sequence[Sequence[Sequence[float]]], draw: Draw) -> NDArray[Any]:
    """[groups, resamples]: the median of trial medians in each resample. All groups have the shape of the draw."""
    ends_met = np.array([[value for trial in group for value in sorted(trial)] for group in groups], dtype=float)
    lower, upper = draw
    medians = (ends_met[:, lower] + ends_met[:, upper]) / 2
    return np.asarray(np.median(medians, axis=-1, overwrite_input=True))
