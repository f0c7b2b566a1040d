"""Tests of operations by hand. That their values and gradients are those of the frameworks is tested beside these."""

import numpy as np

from snnbench.cases.windows import Convolution

POINT = Convolution(name="a", of=("input",), shape=(1, 1, 1), inputs=1, size=(1, 1), stride=(1, 1), padding=(0, 0),
                    dilation=(1, 1))  # fmt: skip


def test_size_of_a_sum_is_that_of_its_largest_part_in_either_order_of_images() -> None:
    """A library whose batch came first was accused of an error of 7e-6: its sums grow over the steps of a sample."""
    steps, samples = 4, 2
    image = np.ones((steps * samples, 1, 1, 1))
    one_up_one_down = np.tile([1.0, -1.0], steps).reshape(-1, 1, 1, 1)  # by step, then by sample
    assert POINT.gradients([image], [], one_up_one_down)[0].item() == 0
    assert POINT.gradient_sizes([image], [], one_up_one_down) == [steps]
