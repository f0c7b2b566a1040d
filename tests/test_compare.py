"""Comparison of recordings made by hand: the ratio where the work is the same, and the word where there is none."""

from typing import Any

import pytest

from snnbench.compare import Row, compare, differing, markdown
from snnbench.record import Record
from tests.fakes import CASE
from tests.recordings import deviating, failed, recording, skipped, timed, weighed

LARGE = CASE.resized(neurons=96)


def only(base: list[Record], new: list[Record], **of_new: Any) -> Row:
    """The one row of a comparison."""
    (row,) = compare(recording(*base, name="old"), recording(*new, name="new", **of_new))
    return row


def test_the_ratio_is_new_over_base_of_the_medians() -> None:
    base = [timed("a", trial, train=train) for trial, train in enumerate((1.0, 2.0, 9.0))]
    new = [timed("a", trial, train=train) for trial, train in enumerate((3.0, 3.0, 1.0))]
    row = only(base, new)
    assert (row.contender, row.phase, row.metric, row.ratio, row.word) == ("a", "train", "time", 1.5, "")


def test_every_time_and_peak_of_every_contender_and_case_is_a_row() -> None:
    records = [
        timed("a", train=1.0, forward=1.0),
        weighed("a", device_mib=4),
        timed("b", train=1.0),
        timed("a", case=LARGE, train=1.0),
    ]
    rows = compare(recording(*records), recording(*records))
    assert {(row.case, row.contender, row.phase, row.metric) for row in rows} == {
        (CASE, "a", "train", "time"),
        (CASE, "a", "forward", "time"),
        (CASE, "a", "train", "host_peak"),
        (CASE, "a", "train", "device_peak"),
        (CASE, "b", "train", "time"),
        (LARGE, "a", "train", "time"),
    }
    assert {row.ratio for row in rows} == {1.0}


@pytest.mark.parametrize(
    ("base", "new", "word"),
    [
        ([timed("a", train=1.0)], [], "missing"),
        ([], [timed("a", train=1.0)], "missing"),
        ([timed("a", train=1.0)], [skipped("a", "unsupported", "no such reset")], "missing"),
        ([timed("a", train=1.0)], [failed("a", "crash", "x")], "failed"),
        ([failed("a", "crash", "x")], [timed("a", train=1.0)], "failed"),
        ([timed("a", train=1.0)], [timed("a", train=1.0), failed("a", "incorrect", "x", trial=1)], "failed"),
        ([failed("a", "crash", "x")], [failed("a", "crash", "x")], "failed"),
        ([timed("a", train=1.0)], [deviating("a", train=1.0)], "incomparable"),
        ([deviating("a", train=1.0)], [timed("a", train=1.0)], "incomparable"),
    ],
)
def test_a_word_says_why_there_is_no_ratio(base: list[Record], new: list[Record], word: str) -> None:
    row = only(base, new)
    assert (row.ratio, row.word) == (None, word)


def test_a_contender_that_deviates_is_compared_with_itself() -> None:
    assert only([deviating("a", train=1.0)], [deviating("a", train=3.0)]).ratio == 3.0


def test_what_both_skipped_is_no_news() -> None:
    both = recording(skipped("a", "unsupported", "no such reset"))
    assert compare(both, both) == []


def test_other_work_is_not_compared() -> None:
    rows = compare(recording(timed("a", train=1.0)), recording(timed("a", case=LARGE, train=1.0)))
    assert [(row.case, row.word) for row in rows] == [(CASE, "missing"), (LARGE, "missing")]


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"model": "a server"}, "machine: 'a laptop' in old, 'a server' in new"),
        ({"repetitions": 9}, "protocol.repetitions: 3 in old, 9 in new"),
        ({"memory_limit_gib": 2.0}, "protocol.memory_limit_gib: None in old, 2.0 in new"),
    ],
)
def test_another_machine_or_protocol_is_incomparable_and_said(change: dict[str, Any], fact: str) -> None:
    records = [timed("a", train=1.0)]
    row = only(records, records, **change)
    assert (row.ratio, row.word) == (None, "incomparable")
    old, new = recording(*records, name="old"), recording(*records, name="new", **change)
    assert differing(old, new) == [fact]


@pytest.mark.parametrize("change", [{"trials": 9}, {"seed": 9}, {"timeout_seconds": 1.0}, {"memory_trials": 0}])
def test_how_many_trials_and_in_which_order_does_not_matter(change: dict[str, Any]) -> None:
    records = [timed("a", train=1.0)]
    assert only(records, records, **change).ratio == 1.0
    assert differing(recording(*records), recording(*records, **change)) == []


def test_the_table_shows_both_sides_with_units_and_the_ratio_or_word() -> None:
    base = recording(timed("a", train=2.0), weighed("a"), timed("b", train=4.0))
    text = markdown(compare(base, recording(timed("a", train=3.0), weighed("a"))))
    assert text.splitlines()[2:] == [
        "| library | phase | metric | base | new | ratio |",
        "| --- | --- | --- | ---: | ---: | ---: |",
        "| a | train | time | 2 ms | 3 ms | 1.500 |",
        "| a | train | host peak | 6 MiB | 6 MiB | 1.000 |",
        "| b | train | time | 4 ms | - | missing |",
    ]


def test_a_peak_of_nothing_has_no_ratio_and_stops_nothing() -> None:
    base, new = recording(weighed("a", host_mib=0)), recording(weighed("a", host_mib=1))
    assert markdown(compare(base, new)).splitlines()[-1] == "| a | train | host peak | 0 MiB | 1 MiB | - |"
