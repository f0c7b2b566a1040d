"""Tests of differences of paired trials, against values computed by hand and SciPy's own tests."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from snnbench.analysis.decision import decide
from snnbench.analysis.difference import Difference, moderate, paired


def pair_of(logs: list[float], base: list[float] | None = None) -> tuple[list[float], list[float]]:
    """Trials of base, and of new so that the logarithms of new over base are these."""
    base = base or [10.0 + number for number in range(len(logs))]
    return base, [one * math.exp(log) for one, log in zip(base, logs, strict=True)]


def test_four_pairs_are_students_t_test() -> None:
    logs = [0.1, 0.3, 0.2, 0.5]
    (difference,) = paired([pair_of(logs)], 0.95, ["one"])
    student = stats.ttest_1samp(logs, 0)
    interval = student.confidence_interval(0.95)
    assert difference.p == pytest.approx(student.pvalue)
    ends = (math.log(difference.low or 0), math.log(difference.high or 0))
    assert ends == pytest.approx((interval.low, interval.high))
    assert difference.ratio == pytest.approx(math.exp(0.25)), "of the median pair"


def test_ten_pairs_are_trimmed_by_two_at_either_end() -> None:
    """Logs 0 to 0.9: the mean of the inner six is 0.45. With the outer four as their nearest inner ones the sum of
    squares is 6 * 0.25^2 + 2 * 0.15^2 + 2 * 0.05^2 = 0.425, and the error sqrt(0.425 / 30) = 0.1190: t is 3.781 with 5
    degrees of freedom, p 0.0129, and t(0.975) is 2.571.
    """
    (difference,) = paired([pair_of([number / 10 for number in range(10)])], 0.95, ["one"])
    assert difference.p == pytest.approx(0.0129, abs=1e-4)
    assert math.log(difference.low or 0) == pytest.approx(0.45 - 2.571 * 0.1190, abs=1e-3)
    assert math.log(difference.high or 0) == pytest.approx(0.45 + 2.571 * 0.1190, abs=1e-3)


def test_outlier_of_five_pairs_counts_like_its_neighbour() -> None:
    quiet, odd = (paired([pair_of([0.01, 0.02, 0.03, 0.04, last])], 0.95, ["one"]) for last in (0.05, 5.0))
    assert quiet == odd


def test_pairs_with_equal_ratios_have_p_1() -> None:
    (difference,) = paired([pair_of([math.log(2)] * 4, [1.0, 2.0, 4.0, 8.0])], 0.95, ["one"])
    assert (difference.ratio, difference.low, difference.high, difference.p) == pytest.approx((2.0, 2.0, 2.0, 1.0))


def test_variances_are_pooled_in_families_of_eight_or_more() -> None:
    logs = [0.1, 0.3, 0.2, 0.4]
    mean, error = 0.25, np.std(logs, ddof=1) / 2
    for families, degrees in ((["a"] * 7, 3), (["a"] * 8, 24), (["a", "b"] * 7, 3), (["a", "b"] * 8, 24)):
        for difference in paired([pair_of(logs)] * len(families), 0.95, families):
            assert difference.p == pytest.approx(2 * stats.t.sf(mean / error, degrees))


def test_family_of_unlike_variances_adds_half_of_its_degrees() -> None:
    widths = (0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3)
    tested = paired([pair_of([1 + width * side for side in (-1, 1, -1, 1)]) for width in widths], 0.95, ["a"] * 8)
    variances = np.array([4 / 3 * width**2 for width in widths])
    together, prior_degrees, most_degrees = moderate(variances, np.full(8, 3.0))
    assert 1 < prior_degrees < most_degrees - 3, "else another number would do"
    for difference, variance in zip(tested, together, strict=True):
        assert difference.p == pytest.approx(2 * stats.t.sf(1 / math.sqrt(variance / 4), 3 + prior_degrees / 2))


def test_four_unlike_pairs_of_a_large_slowdown_decide_nothing() -> None:
    """The example of the tutorial on patches: the interval contains 1."""
    base, new = (60.0, 78.0, 80.0, 300.0), (697.0, 300.0, 90.0, 1500.0)
    (difference,) = paired([(base, new)], 0.95, ["one"])
    shown = [f"{value:.2g}" for value in (difference.ratio, difference.low)] + [f"{difference.high:.3g}"]
    assert shown == ["4.4", "0.86", "18.5"]
    assert decide(difference, difference.p, 0.05, 0.05)[0] == "inconclusive"
    page = (Path(__file__).parents[2] / "docs/tutorials/did-my-patch-make-it-slower.md").read_text(encoding="utf-8")
    ratios = [f"{one / other:.3g}" for one, other in zip(new, base, strict=True)]
    assert ratios == ["11.6", "3.85", "1.12", "5"] and all(number in page for number in shown)


def test_three_pairs_give_no_word() -> None:
    (difference,) = paired([pair_of([0.1, 0.3, 0.2])], 0.95, ["one"])
    assert (difference.p, difference.low, difference.lacking) == (None, None, "3 pairs, where a word takes 4")
    assert difference.ratio == pytest.approx(math.exp(0.2))


def test_one_pair_is_certain_for_counts_only() -> None:
    assert paired([([4.0], [5.0])], 0.95, ["one"], [True]) == [Difference(1.25, 1.25, 1.25, certain=True)]
    (difference,) = paired([([4.0], [5.0])], 0.95, ["one"])
    assert (difference.ratio, difference.p, difference.lacking) == (1.25, None, "one trial in base and new")
