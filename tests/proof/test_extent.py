"""Tests of the extent of a comparison: it follows from the budget alone, and its parts are drawn by a seed."""

import numpy as np
import pytest

from snnbench.proof.extent import Extent, extent, sampled
from tests.fakes import CASE, LIF

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


@pytest.mark.parametrize(
    ("neurons", "batch", "time_steps", "budget_ns", "expected"),
    [
        # a spike takes 250 + 6 * 512 / 40 = 326.8 ns, 500 * 16 * 512 spikes take 1.3386 s
        (512, 16, 500, 1_338_572_801, Extent(512, 16)),
        (512, 16, 500, 1_338_572_800, Extent(512, 16)),
        (512, 16, 500, 1_338_572_799, Extent(63, 1)),
        # 557.2 ns: a neuron of 8000 spikes takes 4.4576 ms, 250 ms hold 56; a sample of 1,024,000 takes 0.57 s
        (2048, 16, 500, 2_000_000_000, Extent(56, 1)),
        # 403.6 ns: a neuron of 25,600 spikes 10.332 ms, a sample of 102,400 41.329 ms; 1 s holds 96 and 24
        (1024, 256, 100, 8_000_000_000, Extent(96, 24)),
        (1024, 256, 100, 0, Extent(32, 1)),
        (16, 256, 100, 0, Extent(16, 1)),
        # 4096 spikes at least: 4096 neurons of one spike, 1366 of three, 32 of a thousand
        (10_000, 1, 1, 0, Extent(4096, 1)),
        (10_000, 1, 3, 0, Extent(1366, 1)),
        (10_000, 1, 1000, 0, Extent(32, 1)),
    ],
)
def test_extent_of_a_budget_agrees_with_a_hand_computation(
    neurons: int, batch: int, time_steps: int, budget_ns: int, expected: Extent
) -> None:
    """A value takes 250 ns and three products of 2 N operations at 40 a nanosecond.

    A part is an eighth of the budget: each of four phases has half for neurons, at least 32, and half for samples.
    """
    assert extent(CASE.with_(neurons=neurons, batch=batch, time_steps=time_steps), budget_ns) == expected


@pytest.mark.parametrize(("budget_ns", "neurons"), [(0, 32), (4 * 10**9, 125)])
def test_neurons_alone_get_the_whole_budget(budget_ns: int, neurons: int) -> None:
    """A value takes 250 ns and a neuron of 32,000 values 8 ms, so a quarter of 4 s holds 125."""
    assert extent(LIF.with_(neurons=2048, batch=64, time_steps=500), budget_ns) == Extent(neurons, 0)


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_draw_is_distinct_and_contains_both_ends(count: int) -> None:
    inner: set[int] = set()
    for seed in range(200):
        drawn = sampled(10, count, seed).tolist()
        assert drawn == sorted(set(drawn)) and len(drawn) == count
        assert (drawn[0], drawn[-1]) == (0, 9)
        inner |= {*drawn[1:-1]}
    assert inner == (set(range(1, 9)) if count > 2 else set())


def test_draw_of_all_is_all_and_of_one_is_any() -> None:
    assert sampled(4, 4, 1).tolist() == sampled(4, 9, 1).tolist() == [0, 1, 2, 3]
    assert {sampled(4, 1, seed).tolist()[0] for seed in range(100)} == {0, 1, 2, 3}
    assert all(len(sampled(4, 1, seed)) == 1 for seed in range(100))
