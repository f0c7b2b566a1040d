"""Tests of statistics on lists, against values computed by hand."""

from statistics import median

import numpy as np
import pytest

from snnbench.analysis.bootstrap import Interval, bootstrap
from snnbench.analysis.rank import geometric_mean
from snnbench.worker.durations import summarise, trial_median


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([3.0, 1.0, 2.0, 5.0, 4.0], (3.0, 2.0, 4.0, 5)),
        ([4.0, 1.0, 3.0, 2.0], (2.5, 1.75, 3.25, 4)),
        ([1.0, 2.0], (1.5, 1.25, 1.75, 2)),
        ([7.0], (7.0, 7.0, 7.0, 1)),
        ([2.0, 2.0, 2.0], (2.0, 2.0, 2.0, 3)),
        ([1.0, 1.0, 1.0, 100.0], (1.0, 1.0, 25.75, 4)),
    ],
    ids=["odd", "even", "two", "one", "all equal", "an outlier"],
)
def test_summary_is_median_and_quartiles(trials: list[float], expected: tuple[float, float, float, int]) -> None:
    """Quartiles stand at (count - 1) / 4 and 3 (count - 1) / 4 of the sorted values, by linear interpolation.

    Hyndman & Fan 1996, definition 7.
    """
    summary = summarise(trials)
    assert (summary.median, summary.low, summary.high, summary.count) == expected
    assert summary.trials == tuple(trials), "in their order"


def test_summary_without_trials_is_refused() -> None:
    with pytest.raises(ValueError, match="no trials"):
        summarise([])


@pytest.mark.parametrize(
    ("repetitions", "passes", "expected"),
    [([90, 10, 20], 1, 20.0), ([30, 10, 20, 90], 1, 25.0), ([90, 10, 20], 10, 2.0), ([8], 4, 2.0), ([6, 6, 6], 3, 2.0)],
    ids=["odd", "even", "several passes", "one", "all equal"],
)
def test_trial_is_the_median_of_its_repetitions_per_pass(
    repetitions: list[float], passes: int, expected: float
) -> None:
    assert trial_median(repetitions, passes) == expected


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        *[([2.0, 8.0], 4.0), ([1.0, 3.0, 9.0], 3.0), ([0.5, 2.0], 1.0), ([7.0], 7.0), ([3.0, 3.0, 3.0, 3.0], 3.0)],
        *[([1.0, 1.0, 8.0], 2.0), ([1.0, 1.0, 1.0, 16.0], 2.0), ([27.0, 1.0, 1.0], 3.0)],
    ],
    ids=["even", "odd", "inverse", "one", "all equal", "an outlier", "of four", "an outlier first"],
)
def test_geometric_mean_is_the_root_of_the_product(ratios: list[float], expected: float) -> None:
    assert geometric_mean(ratios) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("ratios", [[], [1.0, 0.0], [2.0, -1.0]])
def test_geometric_mean_refuses_ratios_not_above_0(ratios: list[float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        geometric_mean(ratios)


@pytest.mark.parametrize(
    ("group", "confidence", "expected"),
    [
        ([[7.0]], 0.95, Interval(7.0, 7.0)),
        ([[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]], 0.95, Interval(2.0, 2.0)),
        ([[3.0, 1.0, 2.0]], 0.4, Interval(2.0, 2.0)),
        ([[3.0, 1.0, 2.0]], 0.6, Interval(1.0, 3.0)),
        ([[2.0, 1.0]], 0.4, Interval(1.5, 1.5)),
        ([[2.0, 1.0]], 0.6, Interval(1.0, 2.0)),
        ([[10.0], [20.0]], 0.4, Interval(15.0, 15.0)),
        ([[10.0], [20.0]], 0.6, Interval(10.0, 20.0)),
        ([[1.0, 2.0, 3.0], [6.0, 6.0]], 0.05, Interval(4.0, 4.0)),
        ([[1.0, 2.0, 3.0], [6.0, 6.0]], 0.9, Interval(1.5, 6.0)),
    ],
    ids=[
        *("one", "all equal", "odd, inside", "odd, ends", "even, inside", "even, ends"),
        *("trials, inside", "trials, ends", "ragged, inside", "ragged, ends"),
    ],
)
def test_bootstrap_interval_cuts_equal_tails(group: list[list[float]], confidence: float, expected: Interval) -> None:
    """The distribution of resamples by hand; each tail of 0.3, 0.2, 0.475 or 0.05 lies clear of its steps.

    Three draws from [1 2 3] have the median 1 if two or three of them are 1: 3 * 1/9 * 2/3 + 1/27 = 7/27 = 0.26. Two
    draws from [1 2] have the median 1 in a quarter of cases, and two trials of [10] and [20] likewise. Of [1 2 3] and
    [6 6]: both draws are the first in a quarter of cases, and the median of their two medians (0.26, 0.48, 0.26) is at
    most 1 in 0.017 and at most 1.5 in 0.079 of all cases. Both are the second, 6, in a quarter. One of each, in a half,
    gives (1 or 2 or 3 + 6) / 2: 4 from 0.38 to 0.62.
    """
    assert bootstrap([group], seed=1, resamples=20_000, confidence=confidence) == [expected]


@pytest.mark.parametrize(("ones", "twos", "ends"), [(7, 2, (1.0, 2.0)), (15, 6, (1.0, 1.0))])
def test_default_interval_cuts_2_5_percent_at_either_end(ones: int, twos: int, ends: tuple[float, float]) -> None:
    """A median is 2 if most draws are 2: with 7 ones and 2 twos in 3.0 % of resamples, with 15 and 6 in 1.8 %.

    sum of C(9, k) (2/9)^k (7/9)^(9 - k) from k = 5 is 0.0304; of C(21, k) (6/21)^k (15/21)^(21 - k) from 11 0.0183.
    """
    assert bootstrap([[[1.0] * ones + [2.0] * twos]], seed=1, resamples=20_000) == [Interval(*ends)]
    mirrored = bootstrap([[[-1.0] * ones + [-2.0] * twos]], seed=1, resamples=20_000)
    assert mirrored == [Interval(-ends[1], -ends[0])]


def test_bootstrap_agrees_with_a_plain_resampling_loop() -> None:
    random = np.random.default_rng(5)
    group = [random.lognormal(trial / 10, 0.1, count).tolist() for trial, count in enumerate((4, 7, 5))]
    plain = [
        median(median(random.choice(group[trial], len(group[trial]))) for trial in random.integers(3, size=3))
        for _ in range(4000)
    ]
    for tail in (0.025, 0.1, 0.25, 0.45):
        (interval,) = bootstrap([group], seed=1, resamples=20_000, confidence=1 - 2 * tail)
        error = 5 * (tail * (1 - tail) / 4000) ** 0.5
        assert (
            np.mean(np.array(plain) < interval.low) - error <= tail <= np.mean(np.array(plain) <= interval.low) + error
        )
        assert np.mean(np.array(plain) > interval.high) - error <= tail
        assert tail <= np.mean(np.array(plain) >= interval.high) + error


def test_bootstrap_is_repeatable_and_independent_by_group() -> None:
    random = np.random.default_rng(5)
    groups = [[random.normal(9, 1, size).tolist() for _ in range(trials)] for trials, size in ((5, 7), (3, 4), (5, 7))]
    together = bootstrap(groups, seed=3, resamples=50)
    assert together == bootstrap(groups, seed=3, resamples=50)
    assert together == [interval for group in groups for interval in bootstrap([group], seed=3, resamples=50)]
    assert together != bootstrap(groups, seed=4, resamples=50)


def test_bootstrap_in_batches_gives_the_same_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [[[1.0 * n, 2.0, 3.0], [4.0, 5.0, 6.0 * n]] for n in range(1, 8)]
    whole = bootstrap(groups, seed=3, resamples=100)
    monkeypatch.setattr("snnbench.analysis.bootstrap.MAX_VALUES_AT_ONCE", 400)
    assert bootstrap(groups, seed=3, resamples=100) == whole


@pytest.mark.parametrize("group", [[], [[]], [[1.0], []]])
def test_bootstrap_refuses_an_empty_group_or_trial(group: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="group 1 has no trials"):
        bootstrap([[[1.0]], group], seed=1)


def test_bootstrap_of_no_groups_is_empty() -> None:
    assert bootstrap([], seed=1) == []
