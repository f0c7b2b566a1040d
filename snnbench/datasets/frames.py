"""Frames of events: their definition, in NumPy.

Only the first second of a sample counts. An event of channel c at time t is counted in step floor(t / window) and in
channel floor(c / 7), both as Tonic computes them: t in whole microseconds, and c times 100/700 rounded down.
"""

import numpy as np
from numpy.typing import NDArray

from snnbench.datasets.heidelberg import CHANNELS, DatasetError

Frames = NDArray[np.int16]
SECOND_US = 1_000_000
KEPT_CHANNELS = 100
"""Channels of a frame; each is the sum of seven channels of events."""
EVENTS_PER_ENTRY = 0.8
"""Events of an entry of a frame, over 100 steps, that are counted with: a sample has about 8,000."""
CLUSTERING = 3.0
"""How many times as large as for independent events the square of their mean counts: events stand close together."""


def window_us(steps: int) -> int:
    """The microseconds of each of so many steps of a second. Raises DatasetError if they are not whole."""
    if SECOND_US % steps:
        raise DatasetError(f"{steps} time steps do not divide a second into whole microseconds; 100 and 250 do")
    return SECOND_US // steps


def frames(times_s: NDArray[np.float16], units: NDArray[np.uint16], steps: int) -> Frames:
    """Frames [T, KEPT_CHANNELS] of the events of a sample: the number of events in each step and channel."""
    times_us = (times_s.astype(np.float64) * 1e6).astype(np.int64)
    step, channel = times_us // window_us(steps), (units * (KEPT_CHANNELS / CHANNELS)).astype(np.int64)
    inside = step < steps
    entries = step[inside] * KEPT_CHANNELS + channel[inside]
    return np.bincount(entries, minlength=steps * KEPT_CHANNELS).astype(np.int16).reshape(steps, KEPT_CHANNELS)


def mean(steps: int) -> float:
    """The mean of an entry that is counted with."""
    return EVENTS_PER_ENTRY * 100 / steps


def mean_square(steps: int) -> float:
    """The mean square of an entry that is counted with."""
    return mean(steps) + CLUSTERING * mean(steps) ** 2
