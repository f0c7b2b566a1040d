"""Standings of records made by hand: what each trial gave, and everything that was timed."""

from snnbench.standing import standings
from tests.fakes import CASE
from tests.recordings import MIB, failed, timed, weighed


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
