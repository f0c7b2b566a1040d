"""Tests of the words of differences made by hand, and of their error rates in simulated comparisons."""

import numpy as np
import pytest

from snnbench.analysis.comparisons import Comparison, Side, judged
from snnbench.analysis.decision import Thresholds, decide
from snnbench.analysis.difference import Difference
from snnbench.analysis.pairs import Field, pairs
from snnbench.worker.durations import summarise
from tests.fakes import CASE


@pytest.mark.parametrize(
    ("difference", "q", "word"),
    [
        (Difference(1.10, 1.06, 1.14, 0.001), 0.05, "slower"),
        (Difference(0.90, 0.86, 0.94, 0.001), 0.05, "faster"),
        (Difference(1.10, 1.06, 1.14, 0.001), 0.051, "inconclusive"),
        (Difference(1.04, 1.03, 1.049, 0.001), 0.001, "same"),
        (Difference(1.04, 1.02, 1.06, 0.001), 0.001, "inconclusive"),
        (Difference(1.00, 0.96, 1.04, 0.9), 0.9, "same"),
        (Difference(1.00, 0.95, 1.04, 0.9), 0.9, "inconclusive"),
        (Difference(1.10, 0.80, 0.99, 0.04), 0.04, "inconclusive"),
        (Difference(1.10, 0.80, 1.20, 0.04), 0.04, "inconclusive"),  # the mean of logs is below 1
        (Difference(0.90, 0.85, 1.25, 0.04), 0.04, "inconclusive"),  # and here above
        (Difference(1.10, 0.90, 1.20, 0.04), 0.04, "slower"),
        (Difference(0.90, 0.80, 1.15, 0.04), 0.04, "faster"),
        (Difference(1.10, 1.10, 1.10, certain=True), None, "slower"),
        (Difference(1.05, 1.05, 1.05, certain=True), None, "same"),
        (Difference(1.0, 1.0, 1.0, certain=True), None, "same"),
        (Difference(2.0, lacking="one trial in base"), None, "inconclusive"),
        (Difference(None, lacking="a value of 0"), None, "inconclusive"),
    ],
)
def test_word_depends_on_size_and_certainty(difference: Difference, q: float | None, word: str) -> None:
    decided, reason = decide(difference, q, 0.05, 0.05)
    assert decided == word
    assert bool(reason) is (word == "inconclusive")


@pytest.mark.parametrize(
    ("ratio", "low", "high", "q", "reason"),
    [
        (1.04, 0.98, 1.10, 0.2, "the interval crosses 5 %"),
        (1.10, 1.05, 1.20, 0.2, "the interval crosses 5 %"),  # its end is within the floor
        (0.96, 0.90, 0.97, 0.2, "the interval crosses 5 %"),  # 1 / 1.05 is 0.952
        (0.93, 0.90, 0.96, 0.2, "the interval crosses 5 %"),
        (1.10, 1.06, 1.14, 0.2, "q is above alpha"),
        (0.90, 0.86, 0.94, 0.2, "q is above alpha"),
        (1.50, 1.40, 1.90, 0.2, "q is above alpha"),
        (1.10, 1.00, 1.05, 0.2, "q is above alpha"),  # its end is the floor
        (1.10, 0.80, 0.94, 0.2, "the median and the mean of the trials disagree"),
        (0.90, 1.06, 1.20, 0.01, "the median and the mean of the trials disagree"),
    ],
)
def test_inconclusive_difference_has_its_reason(ratio: float, low: float, high: float, q: float, reason: str) -> None:
    decided = decide(Difference(ratio, low, high, 0.1), q, 0.05, 0.05)
    assert decided == ("inconclusive", f"{reason}: run more trials")


@pytest.mark.parametrize(
    "difference", [Difference(None, 1.0, 1.2), Difference(1.1, None, 1.2), Difference(1.1, 1.0, None)], ids=str
)
def test_incomplete_difference_is_inconclusive(difference: Difference) -> None:
    assert decide(difference, 0.01, 0.05, 0.05)[0] == "inconclusive"


def test_default_thresholds() -> None:
    """The floors are 5 % of time and 1 % of memory. All trials are equal, so that size alone decides."""
    words = {}
    for metric, share in (("time", 1.049), ("time", 1.051), ("host_peak", 1.009), ("host_peak", 1.011)):
        base, new = (Side(summarise([1000.0 * factor] * 3), []) for factor in (1.0, share))
        (cell,) = judged([Comparison(CASE, "a", "train", metric, base, new)], Thresholds())
        words[metric, share] = cell.word
    assert words == {
        ("time", 1.049): "same",
        ("time", 1.051): "slower",
        ("host_peak", 1.009): "same",
        ("host_peak", 1.011): "slower",
    }
    assert Thresholds().alpha == 0.05


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("time_floor", -0.1),
        ("memory_floor", float("nan")),
        ("memory_floor", float("inf")),
        ("alpha", 0.0),
        ("alpha", 1.0),
    ],
)
def test_threshold_out_of_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{name.replace('_', '-')}: expected"):
        Thresholds(**{name: value})


CELLS, TRIALS, SPREAD = 60, 5, 0.02


def simulated(random: np.random.Generator, factor: float = 1.0) -> list[str]:
    """Words of a comparison: the first cell takes `factor` times as long in the new recording, all others as long."""
    cells = []
    for number in range(CELLS):
        base, new = (summarise(random.lognormal(10, SPREAD, TRIALS).tolist()) for _ in range(2))
        if not number:
            new = summarise([factor * trial for trial in new.trials])
        cells.append(Comparison(CASE, str(number), "train", "time", Side(base, []), Side(new, [])))
    return [cell.word for cell in judged(cells, Thresholds())]


def test_false_positives_of_comparisons_are_at_most_5_percent() -> None:
    random = np.random.default_rng(20)
    words = [simulated(random) for _ in range(200)]
    assert sum(bool({"slower", "faster"} & {*one}) for one in words) <= 10
    assert np.mean([one.count("same") / CELLS for one in words]) > 0.8, (
        "a test that says nothing raises no alarm either"
    )


def test_comparison_finds_a_10_percent_slowdown() -> None:
    """One cell of 60 is 10 % slower; at least 95 % of 200 comparisons find it."""
    random = np.random.default_rng(21)
    words = [simulated(random, 1.1) for _ in range(200)]
    assert sum(one[0] == "slower" for one in words) >= 190
    assert sum(bool({"slower", "faster"} & {*one[1:]}) for one in words) <= 10


RANKINGS, CONTENDERS = 4, 8


def ranked(random: np.random.Generator, factor: float = 1.0) -> list[list[str]]:
    """The words of all pairs in several rankings; the first contender of the first takes `factor` times as long."""
    fields: list[Field] = []
    for number in range(RANKINGS):
        times = {str(name): random.lognormal(10, SPREAD, TRIALS) for name in range(CONTENDERS)}
        if not number:
            times["0"] *= factor
        sides = {name: Side(summarise(each.tolist()), []) for name, each in times.items()}
        fields.append((CASE, "train", sides))
    return [[cell.word for cell in words.values()] for words in pairs(fields, "0", Thresholds())]


def test_false_positives_of_rankings_are_at_most_5_percent() -> None:
    random = np.random.default_rng(23)
    words = [[word for one in ranked(random) for word in one] for _ in range(200)]
    assert sum(bool({"slower", "faster"} & {*one}) for one in words) <= 10
    assert {len(one) for one in words} == {RANKINGS * CONTENDERS * (CONTENDERS - 1) // 2}
    assert np.mean([one.count("same") / len(one) for one in words]) > 0.8


def test_ranking_finds_a_10_percent_slowdown() -> None:
    """Its pairs come first: as the baseline it is the base, so that the others are faster."""
    random = np.random.default_rng(24)
    words = [ranked(random, 1.1) for _ in range(100)]
    assert sum(first[: CONTENDERS - 1].count("faster") >= CONTENDERS - 2 for first, *_ in words) >= 95
    others = [[*first[CONTENDERS - 1 :], *(word for one in rest for word in one)] for first, *rest in words]
    assert sum(bool({"slower", "faster"} & {*one}) for one in others) <= 5


def test_comparison_finds_a_10_percent_speedup() -> None:
    random = np.random.default_rng(22)
    assert sum(simulated(random, 1 / 1.1)[0] == "faster" for _ in range(100)) >= 95
