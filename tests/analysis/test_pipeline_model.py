"""Tests of the models of a temporal pipeline, on numbers worked out by hand."""

import pytest

from snnbench.analysis.pipelines import PipelineTimes, pipeline_times


def test_models_by_hand() -> None:
    """Ts = 120, Tc = 1, k = 4: own work 30, messages 3; with p = 6 blocks the fill is 30 * 3 / 6 = 15."""
    assert pipeline_times(120.0, 1.0, 4, 6) == PipelineTimes(paper=33.0, filled=48.0)


def test_one_rank_takes_the_time_of_one_device() -> None:
    assert pipeline_times(120.0, 1.0, 1, 5) == PipelineTimes(120.0, 120.0)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_one_block_gives_no_speedup(ranks: int) -> None:
    """(Ts / k) (1 + k - 1) = Ts, and the messages come on top."""
    times = pipeline_times(120.0, 0.5, ranks, 1)
    assert times.filled == pytest.approx(120.0 + 0.5 * (ranks - 1))
    assert times.paper < 120.0


def test_many_blocks_approach_the_paper() -> None:
    times = pipeline_times(120.0, 1.0, 4, 10**9)
    assert times.filled == pytest.approx(times.paper)


@pytest.mark.parametrize("arguments", [(-1.0, 1.0, 2, 2), (1.0, -1.0, 2, 2), (1.0, 1.0, 0, 2), (1.0, 1.0, 2, 0)])
def test_impossible_numbers_are_refused(arguments: tuple[float, float, int, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        pipeline_times(*arguments)
