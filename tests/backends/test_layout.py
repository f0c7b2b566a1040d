"""Tests of the conversion between the harness's order of axes and a library's own, in both directions."""

from itertools import permutations

import numpy as np
import pytest

from snnbench.adapter.refusal import Incorrect
from snnbench.backends.layout import Layout

T, B, N = 4, 3, 2
ORDERS = ["".join(axes) for axes in permutations("TBN")]
SIZES = {"T": T, "B": B, "N": N}


@pytest.fixture
def array() -> np.ndarray:
    return np.arange(T * B * N, dtype=np.float32).reshape(T, B, N)


@pytest.mark.parametrize("order", ORDERS)
def test_every_value_lands_at_its_permuted_index(array: np.ndarray, order: str) -> None:
    for arranged in (Layout(order).input(array), Layout(order).cotangent(array)):
        assert arranged.shape == tuple(SIZES[axis] for axis in order)
        assert arranged.flags.c_contiguous
        for t, b, n in np.ndindex(array.shape):
            index = {"T": t, "B": b, "N": n}
            assert arranged[tuple(index[axis] for axis in order)] == array[t, b, n]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("latency", [0, 1, 2])
def test_round_trip_with_latency_restores_the_array(array: np.ndarray, order: str, latency: int) -> None:
    layout = Layout(order, latency)
    entering = layout.input(array)
    axis = order.index("T")
    assert entering.shape[axis] == T + latency
    leaving = np.roll(entering, latency, axis)  # the library's output, late; the steps that wrap around are silent
    assert np.array_equal(layout.spikes(leaving), array)
    back = np.roll(layout.cotangent(array), -latency, axis)  # its gradient, early
    assert np.array_equal(layout.input_gradient(back), array)


def test_latency_is_padded_with_zeros(array: np.ndarray) -> None:
    layout = Layout("TBN", 2)
    assert not layout.input(array)[T:].any()
    assert not layout.cotangent(array)[:2].any()


def test_layout_of_no_steps() -> None:
    layout = Layout("BTN")
    assert layout.spikes(layout.input(np.empty((0, B, N)))).shape == (0, B, N)


@pytest.mark.parametrize("shape", [(4, 3), (4,), (4, 3, 2, 1)])
def test_malformed_answer_passes_through_unchanged(shape: tuple[int, ...]) -> None:
    """The comparison reports it later."""
    assert Layout("BTN").spikes(np.zeros(shape)).shape == shape


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (np.zeros((3, 4, 2)), r"output of shape \[3, 4, 2\], expected \[4, 3, 2\]: \[T, B, N\], by ORDER = 'TBN'"),
        ((), r"the output is a tuple, expected an array of spikes \[T, B, N\]"),
    ],
)
def test_output_of_another_shape_or_type_is_named(output: object, complaint: str) -> None:
    Layout("TBN").require(np.zeros((T, B, N)), (T, B, N))
    with pytest.raises(Incorrect, match=complaint):
        Layout("TBN").require(output, (T, B, N))
