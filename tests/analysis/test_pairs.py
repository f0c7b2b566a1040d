"""Tests of pairs: each two contenders of a case are compared once, and one may be called slower."""

import pytest

from snnbench.analysis.comparisons import Side
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.pairs import pairs, side_of, slower
from snnbench.analysis.results import results_by_case
from snnbench.worker.durations import summarise
from tests.fakes import CASE
from tests.recordings import timed, trials, weighed


def side(*values: float, contended: str = "") -> Side:
    """A side with only these times."""
    return Side(summarise(values), [], contended=contended)


STEADY = {"slow": side(9.0, 9.0), "quick": side(1.0, 1.0), "middle": side(3.0, 3.0)}


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        ("", {("quick", "middle"): 3, ("quick", "slow"): 9, ("middle", "slow"): 3}),
        ("middle", {("middle", "quick"): 1 / 3, ("middle", "slow"): 3, ("quick", "slow"): 9}),
        ("slow", {("slow", "quick"): 1 / 9, ("slow", "middle"): 1 / 3, ("quick", "middle"): 3}),
    ],
)
def test_base_of_each_pair_is_the_baseline_or_the_faster(baseline: str, expected: dict[tuple[str, str], float]) -> None:
    (words,) = pairs([(CASE, "train", STEADY)], baseline, Thresholds())
    assert {pair: cell.ratio for pair, cell in words.items()} == pytest.approx(expected)
    assert list(words) == list(expected)
    for (base, new), cell in words.items():
        assert (cell.case, cell.contender, cell.phase, cell.metric) == (CASE, new, "train", "time")
        assert (cell.base, cell.new) == (STEADY[base], STEADY[new])


def test_slower_does_not_depend_on_the_order_of_a_pair() -> None:
    (words,) = pairs([(CASE, "train", STEADY)], "middle", Thresholds())
    for fast, slow in (("quick", "middle"), ("middle", "slow"), ("quick", "slow")):
        assert slower(words, slow, fast) and not slower(words, fast, slow)
    (alike,) = pairs([(CASE, "train", {"a": side(2.0, 2.0), "b": side(2.0, 2.0)})], "", Thresholds())
    assert not slower(alike, "a", "b") and not slower(alike, "b", "a")


def test_each_field_has_its_own_pairs() -> None:
    two = {"a": side(1.0, 1.0), "b": side(2.0, 2.0)}
    fields = [(CASE, "train", two), (CASE, "forward", {"a": side(5.0, 5.0)}), (CASE, "backward", STEADY)]
    of_fields = pairs(fields, "a", Thresholds())
    assert [len(words) for words in of_fields] == [1, 0, 3]
    assert of_fields[0]["a", "b"].phase == "train" and of_fields[2]["quick", "slow"].phase == "backward"


def test_times_of_a_phase_name_the_contended() -> None:
    records = [*trials("quiet", [1.0, 2.0]), timed("loud", train=3.0, forward=4.0, flags=["contended"])]
    quiet, loud = results_by_case(records)[CASE]
    assert side_of(quiet, "train").summary.trials == (1e6, 2e6)
    assert side_of(quiet, "train").repetitions == [(1e6, 1e6, 4.5e6), (2e6, 2e6, 9e6)]
    (both,) = results_by_case([timed("a", train=1.0), weighed("a")])[CASE]
    assert both.repetitions and side_of(both, "train", "host_peak").repetitions == []
    assert side_of(quiet, "train").contended == side_of(loud, "train", allowed=["contended"]).contended == ""
    assert side_of(loud, "forward").contended == "loud"
    assert side_of(loud, "forward").summary.trials == (4e6,)
