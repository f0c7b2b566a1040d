"""Tests of differences of unpaired trials, against values computed by hand and SciPy's own tests."""

import math

import numpy as np
import pytest
from scipy import stats

from snnbench.analysis.difference import Difference, adjusted, between, differences, intervals, moderate, paired

E = math.e


def only(base: list[float], new: list[float], **more: list[bool]) -> Difference:
    """The difference of one pair."""
    (difference,) = differences([(base, new)], 0.95, **more)
    return difference


def test_one_pair_of_equal_spread_is_welchs_test() -> None:
    """Logs 0 1 2 and 3 4 5: variances 1, so the error is sqrt(2/3), t = 3 / 0.816 = 3.674 with 4 degrees of freedom.

    Twice the tail of t beyond 3.674 is 0.0213, and t(0.975) is 2.776: 3 - 2.776 * 0.8165 = 0.733.
    """
    difference = only([1, E, E**2], [E**3, E**4, E**5])
    assert difference.ratio == pytest.approx(E**3)
    assert difference.p == pytest.approx(0.0213, abs=5e-5)
    assert math.log(difference.low or 0) == pytest.approx(0.733, abs=1e-3)
    assert math.log(difference.high or 0) == pytest.approx(5.267, abs=1e-3)


def test_equal_variances_are_pooled() -> None:
    """Logs 0 1 2 and 3 - w, 3 - w, 3 + w, 3 + w with w = sqrt(3) / 2 have the variance 1.

    Their degrees of freedom are 2 and 3, so one pair has 5, and three have 15. The error is sqrt(1/3 + 1/4).
    """
    w = 3**0.5 / 2
    pair = ([1, E, E**2], [math.exp(3 - w), math.exp(3 - w), math.exp(3 + w), math.exp(3 + w)])
    for count in (1, 3):
        for difference in differences([pair] * count, 0.95):
            assert difference.p == pytest.approx(2 * stats.t.sf(2 / (7 / 12) ** 0.5, 5 * count))
            reach = stats.t.ppf(0.975, 5 * count) * (7 / 12) ** 0.5
            assert difference.low == pytest.approx(math.exp(2 - reach))
            assert difference.high == pytest.approx(math.exp(2 + reach))


def test_largest_variance_is_not_shrunk() -> None:
    """A thousand quiet pairs do not make a noisy one quiet: its p stays near that of its own Welch test."""
    random = np.random.default_rng(1)
    quiet = [tuple(np.exp(random.normal(0, 0.01, 5)).tolist() for _ in range(2)) for _ in range(1000)]
    noisy = ([1.0, 1.5, 0.6, 1.1, 0.8], [1.4, 0.9, 1.9, 1.3, 1.2])
    difference = differences([*quiet, noisy], 0.95)[-1]
    welch = stats.ttest_ind(*np.log(noisy), equal_var=False)
    assert difference.p is not None
    assert stats.norm.sf(abs(welch.statistic)) * 2 <= difference.p <= welch.pvalue


@pytest.mark.parametrize(
    ("base", "new", "counted", "expected"),
    [
        ([2.0], [3.0, 3.0], False, Difference(1.5, lacking="one trial in base")),
        ([2.0], [3.0], False, Difference(1.5, lacking="one trial in base and new")),
        ([2.0], [3.0], True, Difference(1.5, 1.5, 1.5, certain=True)),
        ([2.0, 2.0], [3.0, 3.0, 3.0], False, Difference(1.5, 1.5, 1.5, certain=True)),
        ([2.0, 2.0], [2.0, 2.0], False, Difference(1.0, 1.0, 1.0, certain=True)),
        ([0.0, 0.0], [0.0], False, Difference(1.0, 1.0, 1.0, certain=True)),
        ([0.0, 0.0], [3.0, 3.0], False, Difference(None, lacking="a value of 0")),
        ([2.0, 2.0], [0.0, 3.0], False, Difference(None, lacking="a value of 0")),
        ([0.0, 1.0], [1.0, 0.0], False, Difference(None, lacking="a value of 0")),
        ([0.0], [0.0, 1.0], True, Difference(None, lacking="a value of 0")),
        ([2.0, 2.0], [3.0], False, Difference(1.5, lacking="one trial in new")),
        ([2.0], [3.0, 4.0], True, Difference(1.75, lacking="one trial in base")),
        ([1.0, 2.0, 9.0], [6.0], False, Difference(3.0, lacking="one trial in new")),
        ([2.0], [1.0, 4.0, 9.0], False, Difference(2.0, lacking="one trial in base")),
    ],
)
def test_untestable_pair_has_no_p(base: list[float], new: list[float], counted: bool, expected: Difference) -> None:
    assert only(base, new, counted=[counted]) == expected


def test_constant_side_gets_the_variance_of_the_other() -> None:
    """Logs 1 1 and 2 3 4: the error is sqrt(1/2 + 1/3), because the constant side gets the variance of the other."""
    difference = only([E, E], [E**2, E**3, E**4])
    assert difference.p is not None and 0 < difference.p < 1
    assert not difference.certain
    assert difference.low is not None and difference.high is not None and difference.low < E**2 < difference.high


def test_unlike_variances_have_welchs_and_the_priors_degrees() -> None:
    """Five samples whose variances are 1, 16, 81, 256 and 625 thousandths are less alike than one population's.

    Each is compared with the first, by Welch's and Satterthwaite's formula on variances that are never made smaller.
    """
    random, counts, means = np.random.default_rng(2), np.array([4, 5, 6, 7, 8]), [1.0, 1.1, 0.8, 1.3, 0.6]
    logs = []
    for count, mean, scale in zip(counts, means, (1, 4, 9, 16, 25), strict=True):
        drawn = random.normal(size=count)
        logs.append(mean + scale * 0.001**0.5 * (drawn - drawn.mean()) / drawn.std(ddof=1))
    moderated, prior, most = moderate(np.array([each.var(ddof=1) for each in logs]), counts - 1.0)
    assert 0 < prior < 3 and most == 25, "otherwise the formula does not decide"
    parts = moderated / counts
    ends = between([np.exp(each).tolist() for each in logs], [(0, number) for number in range(1, 5)], 0.95)
    for number, difference in enumerate(ends, 1):
        squared = parts[0] + parts[number]
        welch_s = squared**2 / (parts[0] ** 2 / (counts[0] - 1) + parts[number] ** 2 / (counts[number] - 1))
        assert welch_s + prior < most
        distance, reach = means[number] - means[0], stats.t.ppf(0.975, welch_s + prior) * squared**0.5
        assert difference.p == pytest.approx(2 * stats.t.sf(abs(distance) / squared**0.5, welch_s + prior))
        assert math.log(difference.low or 0) == pytest.approx(distance - reach)
        assert math.log(difference.high or 0) == pytest.approx(distance + reach)


def test_rounding_of_the_mean_adds_no_variance() -> None:
    value = next(v for v in np.arange(2.0, 9.0, 0.1).tolist() if np.log([v] * 3).var(ddof=1) > 0)
    noisy = [1.0, 1.5, 1.25]
    assert intervals([[value] * 3, noisy], 0.95)[1] == intervals([[1.0] * 3, noisy], 0.95)[1]


def test_no_pairs_have_no_differences() -> None:
    assert differences([], 0.95) == []


def test_q_is_the_benjamini_hochberg_adjusted_p() -> None:
    """Sorted 0.01 0.02 0.03 0.5 times 4/1 4/2 4/3 4/4: 0.04 0.04 0.04 0.5."""
    assert adjusted([0.5, None, 0.02, 0.01, 0.03]) == pytest.approx([0.5, None, 0.04, 0.04, 0.04])
    assert adjusted([0.2]) == [0.2]
    assert adjusted([0.3, 0.3]) == pytest.approx([0.3, 0.3])
    assert adjusted([None]) == [None]
    random = np.random.default_rng(1)
    p = random.uniform(size=100) ** 3
    assert adjusted(p.tolist()) == pytest.approx(stats.false_discovery_control(p).tolist())
    assert adjusted([]) == []


def test_alike_variances_are_pooled_and_never_reduced() -> None:
    """1 and 3 of 2 degrees of freedom each have the mean 2, and 4 degrees of freedom together."""
    variances, prior_degrees, most_degrees = moderate(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    assert variances.tolist() == [2.0, 3.0]
    assert (prior_degrees, most_degrees) == (math.inf, 4.0)


def test_constant_sample_does_not_affect_the_prior() -> None:
    variances, prior_degrees, most_degrees = moderate(np.array([0.0, 1.0, 3.0]), np.array([9.0, 2.0, 2.0]))
    assert variances.tolist() == [2.0, 2.0, 3.0]
    assert (prior_degrees, most_degrees) == (math.inf, 4.0)
    assert moderate(np.array([0.0]), np.array([4.0]))[0].tolist() == [0.0]


@pytest.mark.parametrize("d", [4, 10])
def test_prior_is_estimated_from_many_variances(d: int) -> None:
    """10 000 variances s0^2 * d0 / chi^2(d0) * chi^2(d) / d, as Smyth 2004 has them, with s0 = 0.02 and d0 = 6."""
    random = np.random.default_rng(3)
    true = 0.02**2 * 6 / random.chisquare(6, 10_000)
    measured = true * random.chisquare(d, 10_000) / d
    variances, prior_degrees, _ = moderate(measured, np.full(10_000, float(d)))
    assert prior_degrees == pytest.approx(6, rel=0.1)
    small = measured < 0.02**2 / 4
    assert variances[small] == pytest.approx((6 * 0.02**2 + d * measured[small]) / (6 + d), rel=0.1)
    assert (variances >= measured).all()


def test_interval_is_of_the_geometric_mean() -> None:
    """Logs 0 1 2: 1 and t(0.975, 2) = 4.303 times sqrt(1/3)."""
    (interval,) = intervals([[1, E, E**2]], 0.95)
    assert interval is not None
    assert [math.log(end) for end in interval] == pytest.approx([1 - 4.303 / 3**0.5, 1 + 4.303 / 3**0.5], abs=1e-3)
    assert intervals([[5.0], [], [0.0, 1.0]], 0.95) == [None, None, None]
    assert intervals([[5.0, 5.0]], 0.95) == [pytest.approx((5.0, 5.0))]
    assert intervals([], 0.95) == []


def test_interval_of_a_mean_has_its_own_and_the_priors_degrees() -> None:
    samples = [[math.exp(width * number) for number in (-1, 0, 1)] for width in (0.01, 0.02, 0.9, 1.1)]
    variances = np.array([0.01**2, 0.02**2, 0.9**2, 1.1**2])
    together, prior_degrees, most_degrees = moderate(variances, np.full(4, 2.0))
    freedom = 2 + prior_degrees
    assert 0 < prior_degrees < most_degrees - 3, "else another number would do"
    for interval, variance in zip(intervals(samples, 0.95), together, strict=True):
        assert interval is not None
        reach = stats.t.ppf(0.975, freedom) * math.sqrt(variance / 3)
        assert (math.log(interval[0]), math.log(interval[1])) == pytest.approx((-reach, reach))


def test_huge_interval_stays_finite() -> None:
    trials = ([1.0, 1.1, 1.2, 1.3], [1.3, 1.1, 1.5, 1.2])
    (pairs,) = paired([trials], 1 - 1e-15, ["time"])
    (sides,) = differences([trials], 1 - 1e-15)
    for difference in (pairs, sides):
        assert difference.low is not None and 0 < difference.low < 1e-4
        assert difference.high is not None and 1e4 < difference.high < 1e10
    (interval,) = intervals([[4e9, 1e5]], 1 - 1e-15)
    assert interval is not None and 0 < interval[0] < interval[1] < 1e17
