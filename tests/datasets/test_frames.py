"""Tests of frames: counted by hand."""

import numpy as np
import pytest

from snnbench.datasets import frames
from snnbench.datasets.heidelberg import CHANNELS, DatasetError


def test_events_are_counted_in_their_step_and_channel() -> None:
    times = np.array([0.0, 0.0, 0.25, 0.5, 0.999, 1.0, 1.125], np.float16)
    units = np.array([0, 6, 7, 699, 13, 0, 0], np.uint16)
    counted = frames.frames(times, units, 50)
    assert counted.shape == (50, frames.KEPT_CHANNELS) and counted.dtype == np.int16
    assert counted[0, 0] == 2  # channels 0 and 6
    assert counted[12, 1] == 1  # 250 ms in windows of 20 ms
    assert counted[25, 99] == 1
    assert counted[49, 1] == 1
    assert counted.sum() == 5, "events from a second on do not count"


def test_channels_are_whole_sevenths() -> None:
    """Each kept channel gets seven or, where 7 k times 100/700 rounds down, eight or six."""
    units = np.arange(CHANNELS, dtype=np.uint16)
    counted = frames.frames(np.zeros(CHANNELS, np.float16), units, 50)[0]
    assert counted.sum() == CHANNELS and set(counted.tolist()) <= {6, 7, 8}


@pytest.mark.parametrize("steps", [3, 300, 1001])
def test_steps_that_do_not_divide_a_second_are_refused(steps: int) -> None:
    with pytest.raises(DatasetError, match=f"{steps} time steps do not divide a second"):
        frames.window_us(steps)
