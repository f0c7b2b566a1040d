"""Tests of the extent of a comparison: it follows from the budget alone, and its parts are drawn by a seed."""

import numpy as np
import pytest

from snnbench.proof.extent import Extent, extent, sampled
from tests.fakes import CASE

LARGE = CASE.with_(neurons=96, batch=5, time_steps=23, input_rate=0.1)


def test_extent_depends_on_the_budget_only() -> None:
    core = LARGE.with_(neurons=512, batch=16, time_steps=500)
    assert extent(core, 2 * 10**9) == Extent(512, 16)
    assert extent(core, 0) == Extent(32, 1)
    large = core.with_(neurons=2048)
    part = extent(large, 2 * 10**9)
    assert 32 < part.neurons < 2048 and 1 <= part.samples < 16
    assert extent(large, 4 * 10**9).neurons == pytest.approx(2 * part.neurons, abs=2)
    assert extent(large.with_(layers=2), 0) == Extent(2048, 16), "layers are not independent"
    assert extent(LARGE.with_(neurons=16, batch=1), 0) == Extent(16, 1)


@pytest.mark.parametrize(("size", "count"), [(7, 7), (7, 9), (1, 1), (0, 0)])
def test_full_sample_contains_every_number(size: int, count: int) -> None:
    assert sampled(size, count, 0).tolist() == list(range(size))


@pytest.mark.parametrize("count", [2, 3, 40])
def test_sample_is_sorted_distinct_and_contains_both_ends(count: int) -> None:
    for seed in range(20):
        numbers = sampled(50, count, seed)
        assert len(numbers) == count and (np.diff(numbers) > 0).all()
        assert (numbers[0], numbers[-1]) == (0, 49)
        assert np.array_equal(numbers, sampled(50, count, seed)), "the seed says which"


def test_single_number_may_be_any() -> None:
    assert {int(sampled(5, 1, seed)[0]) for seed in range(60)} == set(range(5))
