"""Tests of the conversion between the harness's order of axes and a library's own, in both directions."""

from itertools import permutations

import numpy as np
import pytest

from snnbench.backends.layout import Layout

T, B, N = 4, 3, 2
ORDERS = ["".join(axes) for axes in permutations("TBN")]
SIZES = {"T": T, "B": B, "N": N}


@pytest.fixture
def array() -> np.ndarray:
    return np.arange(T * B * N, dtype=np.float32).reshape(T, B, N)


@pytest.mark.parametrize("order", ORDERS)
def test_every_value_lands_where_the_order_says(array: np.ndarray, order: str) -> None:
    for arranged in (Layout(order).input(array), Layout(order).cotangent(array)):
        assert arranged.shape == tuple(SIZES[axis] for axis in order)
        assert arranged.flags.c_contiguous
        for t, b, n in np.ndindex(array.shape):
            place = {"T": t, "B": b, "N": n}
            assert arranged[tuple(place[axis] for axis in order)] == array[t, b, n]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("latency", [0, 1, 2])
def test_what_a_late_copy_gives_back_is_what_came_in(array: np.ndarray, order: str, latency: int) -> None:
    layout = Layout(order, latency)
    entering = layout.input(array)
    axis = order.index("T")
    assert entering.shape[axis] == T + latency
    leaving = np.roll(entering, latency, axis)  # the library's output, late; the steps that wrap around are silent
    assert np.array_equal(layout.spikes(leaving), array)
    back = np.roll(layout.cotangent(array), -latency, axis)  # its gradient, early
    assert np.array_equal(layout.input_gradient(back), array)


def test_latency_is_padded_with_silence_where_nobody_looks(array: np.ndarray) -> None:
    layout = Layout("TBN", 2)
    assert not layout.input(array)[T:].any()
    assert not layout.cotangent(array)[:2].any()


def test_no_steps_at_all() -> None:
    layout = Layout("BTN")
    assert layout.spikes(layout.input(np.empty((0, B, N)))).shape == (0, B, N)


@pytest.mark.parametrize("shape", [(4, 3), (4,), (4, 3, 2, 1)])
def test_an_answer_without_three_axes_passes_through_to_be_complained_about(shape: tuple[int, ...]) -> None:
    assert Layout("BTN").spikes(np.zeros(shape)).shape == shape
