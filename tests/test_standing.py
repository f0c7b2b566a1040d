"""Standings of records made by hand: what each trial gave, and everything that was timed."""

from typing import Any

import pytest

from snnbench.record import Record
from snnbench.standing import standings
from tests.fakes import CASE
from tests.recordings import MIB, deviating, failed, skipped, timed, weighed


def order(*records: Record) -> list[str]:
    """The contenders of these records, in the order of a table."""
    (found,) = standings(records).values()
    return [standing.contender for standing in found]


def equivalent(name: str, **fields: Any) -> Record:
    """A cell that was found right within a format of fewer digits."""
    return timed(name, outcome={"status": "measured", "verdict": "equivalent"}, **fields)


def test_exact_ones_come_first_then_equivalent_then_deviating_then_those_without_a_time() -> None:
    """However fast each is: here the later verdicts are the faster ones, and names go the other way, too."""
    records = [
        *[failed("a", "crash", "died"), deviating("b", train=1.0), equivalent("c", train=2.0), timed("d", train=9.0)],
        *[skipped("e", "unsupported", "no reset"), equivalent("f", train=1.5), timed("g", train=8.0)],
    ]
    assert order(*records) == ["g", "d", "f", "c", "b", "a", "e"]
    assert order(*reversed(records)) == ["g", "d", "f", "c", "b", "a", "e"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("train", "forward"), ("forward", "backward"), ("backward", "inference"), ("train", "inference")],
)
def test_another_phase_s_time_is_no_rank_however_short(first: str, second: str) -> None:
    assert order(timed("a", **{second: 1.0}), timed("b", **{first: 9.0})) == ["b", "a"]
    assert order(timed("a", **{first: 9.0, second: 1.0}), timed("b", **{first: 8.0, second: 7.0})) == ["b", "a"]


def test_equal_times_go_by_the_name() -> None:
    assert order(timed("b", train=1.0), timed("a", train=1.0)) == ["a", "b"]


def test_one_trial_of_a_lesser_verdict_makes_all_of_them_that() -> None:
    records = [timed("a", 0, train=1.0), equivalent("a", trial=1, train=1.0), timed("b", train=9.0)]
    (a,) = (one for one in standings(records)[CASE] if one.contender == "a")
    assert a.verdict == "equivalent" and order(*records) == ["b", "a"]


def test_a_standing_keeps_each_trial_and_each_repetition_by_pass_in_the_order_of_trials() -> None:
    records = [timed("a", 1, train=4.0, forward=1.0), weighed("a"), timed("a", 0, train=3.0)]
    (standing,) = standings(records)[CASE]
    assert standing.summaries["train", "time"].trials == (3e6, 4e6)
    assert standing.summaries["forward", "time"].trials == (1e6,)
    assert standing.summaries["train", "host_peak"].trials == (6 * MIB,)
    assert standing.repetitions == {
        "train": [(3e6, 3e6, 13.5e6), (4e6, 4e6, 18e6)],
        "forward": [(1e6, 1e6, 4.5e6)],
    }, "repetitions of two passes each, the last of them 4.5 times as long"


def test_what_was_found_incorrect_has_no_repetitions_either() -> None:
    (standing,) = standings([timed("a", train=4.0), failed("a", "incorrect", "3 spikes differ", trial=1)])[CASE]
    assert (standing.summaries, standing.repetitions) == ({}, {})
