"""Tests of a ranking's baseline, and of the cases in its mean."""

import pytest

from snnbench.adapter.contender import UnknownContender
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.rank import rank
from tests.analysis.test_rank import LARGE, contended, ranked, times
from tests.fakes import CASE
from tests.recordings import deviating, failed, recording

ZERO = CASE.with_(reset="zero", detach_reset=True)


def test_contended_baseline_leaves_ranks_without_words() -> None:
    (ranking,) = ranked(*contended("a", 1), *times("b", 2), *times("c", 3)).rankings
    assert [(one.contender, one.rank, one.reason) for one in ranking.entries] == [
        *[("a", None, "contended"), ("b", 1, ""), ("c", 2, "")]
    ]
    assert [one.comparison.word for one in ranking.entries if one.comparison] == ["inconclusive"] * 2


def test_failed_trial_excludes_from_rank_and_mean() -> None:
    """b's five times are of its good trials; in the larger case all trials are good."""
    records = [*times("a", 1), *times("b", 0.5), *times("a", 1, case=LARGE), *times("b", 3, case=LARGE)]
    result = ranked(*records, failed("b", "timeout", "no answer in 9 s", trial=5))
    first, second = result.rankings
    assert [(one.contender, one.rank) for one in first.entries] == [("a", 1)]
    assert first.apart == [("b", "failed: timeout: no answer in 9 s")]
    assert [(one.contender, one.rank) for one in second.entries] == [("a", 1), ("b", 2)]
    (mean,) = result.means
    assert (mean.cases, mean.known, mean.lacking) == (1, 2, {"b": 1})
    assert mean.ratios == pytest.approx({"a": 1.0, "b": 3.0})


def test_failed_baseline_gives_no_words() -> None:
    (ranking,) = ranked(*times("a", 1), *times("b", 1), failed("a", "crash", "died", trial=5)).rankings
    (entry,) = ranking.entries
    assert entry.comparison and (entry.contender, entry.comparison.word, entry.comparison.reason) == (
        "b",
        "missing",
        "a failed",
    )
    assert ranking.apart == [("a", "failed: crash: died")]


def test_missing_baseline_leaves_ranks_without_ratios() -> None:
    (_, second) = ranked(*times("a", 1), *times("b", 1, case=LARGE)).rankings
    (entry,) = second.entries
    assert entry.rank == 1
    assert entry.comparison and (entry.comparison.word, entry.comparison.ratio, entry.comparison.reason) == (
        "missing",
        None,
        "a has no time of this work",
    )


def test_deviating_baseline_gives_no_words() -> None:
    (ranking,) = ranked(*(deviating("a", trial=trial, train=1.0) for trial in range(3)), *times("b", 1)).rankings
    assert ranking.entries[0].comparison and ranking.entries[0].comparison.word == "missing"


def test_mean_is_over_the_cases_shared_by_all() -> None:
    """In two cases b takes 2 and 8 times as long as a, c 1 and 9 times. c fails in the third, so no ratio counts."""
    sizes = [CASE.with_(neurons=neurons) for neurons in (16, 32, 64)]
    records = [record for case in sizes for record in times("a", 1, case=case)]
    records += [one for case, factor in zip(sizes, (2, 8, 1000), strict=True) for one in times("b", factor, case=case)]
    records += [one for case, factor in zip(sizes, (1, 9), strict=False) for one in times("c", factor, case=case)]
    (mean,) = ranked(*records, failed("c", "crash", "x", case=sizes[2])).means
    assert (mean.cases, mean.known, mean.lacking) == (2, 3, {"c": 1})
    assert mean.ratios == pytest.approx({"a": 1.0, "b": 4.0, "c": 3.0})


def test_mean_is_not_taken_across_profiles() -> None:
    means = ranked(*times("a", 1), *times("b", 2), *times("a", 1, case=ZERO), *times("b", 8, case=ZERO)).means
    assert [(mean.of[1], mean.cases, round(mean.ratios["b"], 6)) for mean in means] == [
        ("subtract", 1, 2.0),
        ("zero", 1, 8.0),
    ]


def test_mean_is_not_taken_across_formats() -> None:
    cases = (CASE, CASE.with_(precision="tf32"), CASE.with_(dtype="float64"))
    means = ranked(*(one for case in cases for name in "ab" for one in times(name, 1, case=case))).means
    assert sorted(mean.of for mean in means) == [
        ("cpu", "subtract", dtype, precision)
        for dtype, precision in (("float32", "ieee"), ("float32", "tf32"), ("float64", "ieee"))
    ]


def test_baseline_without_a_time_is_lacking_in_the_mean() -> None:
    (mean,) = ranked(*times("b", 1), failed("a", "crash", "died")).means
    assert (mean.ratios, mean.lacking) == ({}, {"a": 1})


def test_no_shared_case_gives_no_mean() -> None:
    (mean,) = ranked(*times("a", 1), *times("b", 2, case=LARGE)).means
    assert (mean.cases, mean.known, mean.ratios, mean.lacking) == (0, 2, {}, {"a": 1, "b": 1})


@pytest.mark.parametrize(("given", "expected"), [("b/fast", "b/fast"), ("b", "b/fast"), ("", "a")])
def test_baseline_is_a_contender_a_library_or_the_configs(given: str, expected: str) -> None:
    assert ranked(*times("a", 1), *times("b/fast", 1), baseline=given).baseline == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("c", r"--baseline: unknown contender 'c' \(known: a, b/fast, b/slow\)"),
        ("b/fats", r"--baseline: unknown contender 'b/fats' \(did you mean 'b/fast'\?\)"),
        ("b", r"--baseline: unknown contender 'b' \(known: b/fast, b/slow\)"),
    ],
)
def test_unknown_baseline_is_refused_with_suggestions(given: str, message: str) -> None:
    with pytest.raises(UnknownContender, match=message):
        ranked(*times("a", 1), *times("b/fast", 1), *times("b/slow", 1), baseline=given)


def test_recording_without_baseline_is_refused() -> None:
    with pytest.raises(UnknownContender, match="one: names no baseline: give --baseline one of a, b"):
        rank(recording(*times("a", 1), *times("b", 1)), "", Thresholds())
