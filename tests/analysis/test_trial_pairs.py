"""Tests of the pairs of an A/B test: both sides share a disturbance, and a trial without its partner is left out."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from snnbench.adapter.contender import Work
from snnbench.analysis.abtest import Rule, _is_whole, settled, undecided
from snnbench.analysis.comparability import Incomparable
from tests.analysis.test_abtest import QUIET, both, of_sides, only, side
from tests.fakes import CASE
from tests.recordings import failed, timed


def test_disturbance_of_both_sides_makes_no_difference() -> None:
    """The machine takes twice as long from the seventh trial on. That would hide the change from an unpaired test."""
    step = [1.0] * 6 + [2.0] * 6
    base = [ms * by for ms, by in zip(QUIET, step, strict=True)]
    new = [1.1 * ms * (1.002 if number % 2 else 0.998) for number, ms in enumerate(base)]
    assert only(of_sides(*both(new, base))).word == "slower"
    assert only(of_sides(*both([ms / 1.1 for ms in new], base))).word == "same"


def test_contended_pairs_are_left_out_and_counted() -> None:
    slow = [3.0 * ms if number in (1, 5) else 1.001 * ms for number, ms in enumerate(QUIET)]
    records = both(slow)
    noisy = [replace(one, flags=["contended"]) if one.side == "new" and one.trial in (1, 5) else one for one in records]
    cell = only(of_sides(*noisy, stops_early=False))
    assert (cell.word, cell.reason) == ("same", "2 pairs left out: contended")
    assert cell.base is not None and cell.base.summary.count == 10
    counted = only(of_sides(*noisy, stops_early=False), allowed=["contended"])
    assert counted.base is not None and counted.base.summary.count == 12
    assert counted.reason == "contended in new"


@pytest.mark.parametrize(("turns", "counted"), [({"base": 7, "new": 7}, 12), ({"base": 7, "new": 0}, 10), ({}, 10)])
def test_contended_pair_counts_if_its_sides_took_turns(turns: dict[str, int], counted: int) -> None:
    """Other processes disturb both sides alike. A side without its partner took no turns."""
    records = [
        replace(one, flags=["contended", "drifted"], settings={"turns": turns.get(one.side, 0)})
        if one.trial in (1, 5)
        else one
        for one in both([1.001 * ms for ms in QUIET])
    ]
    cell = only(of_sides(*records, stops_early=False))
    assert cell.base is not None and cell.base.summary.count == counted
    assert cell.word == "same" and (cell.reason == "") is (counted == 12)


def test_all_pairs_contended_is_inconclusive() -> None:
    slow = [1.5 * ms for ms in QUIET]
    cell = only(of_sides(*both(slow, flags=["contended"])))
    assert cell.word == "inconclusive" and cell.reason.startswith("contended in base and new: ")
    assert undecided(of_sides(*both(slow[:4], flags=["contended"])), Rule()) == {Work(CASE, "a", "default")}


def test_trial_without_its_other_side_is_left_out() -> None:
    records = both(QUIET)
    lacking = [one for one in records if (one.side, one.trial) != ("new", 3)]
    cell = only(of_sides(*lacking, stops_early=False))
    assert cell.base is not None and cell.new is not None
    assert cell.base.summary.count == cell.new.summary.count == 11


def test_trials_with_different_numbers_are_not_paired() -> None:
    """No statistic may divide one by the other, even if their counts are equal."""
    for numbers in ((2, 3), (2, 3, 4)):
        base = [timed("a", number, train=1.0, side="base") for number in (0, 1)]
        new = [timed("a", number, train=2.0, side="new") for number in numbers]
        crashed = [failed("a", "crash", "died", trial=number, side="new") for number in (0, 1)]
        (cell,) = settled(of_sides(*base, *new, *crashed), Rule())
        assert (cell.word, cell.metric) == ("failed", "")


def test_sides_measured_far_apart_are_not_paired() -> None:
    """The run stopped between them, and continued on another day."""
    noise = [ms * (1.001 if number % 2 else 0.999) for number, ms in enumerate(QUIET)]
    base = [replace(one, started=f"2026-11-21T10:{one.trial:02}:00+00:00") for one in side("base", QUIET[:8])]
    new = [replace(one, started=f"2026-11-21T10:{one.trial:02}:30+00:00") for one in side("new", noise[:8])]
    cell = only(of_sides(*base, *new))
    assert cell.base is not None and cell.base.summary.count == 4, "the first look gave it a word"
    late = [replace(one, started="2026-11-22T10:00:00+00:00") if one.trial > 2 else one for one in new]
    cell = only(of_sides(*base, *late))
    assert (cell.word, cell.reason) == ("inconclusive", "3 pairs, where a word takes 4")


@pytest.mark.parametrize(("seconds", "is_whole"), [(0, True), (601.5, True), (602, False)])
def test_sides_of_a_pair_are_ten_minutes_apart_at_most(seconds: float, is_whole: bool) -> None:
    """Besides the 1.5 s that a side took."""
    start = datetime(2026, 11, 21, 10, tzinfo=UTC)
    starts = [(start + timedelta(seconds=after)).isoformat() for after in (0, seconds)]
    assert _is_whole([replace(timed("a", train=1.0), started=each) for each in starts]) is is_whole


def test_selected_phase_without_a_pair_has_no_measured_trial_for_a_reason() -> None:
    with pytest.raises(Incomparable, match="nothing to compare: no pair is whole"):
        only(of_sides(*both(QUIET)), phases=("forward",))
