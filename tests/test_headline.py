"""The headline claims no more than was seen: ties where intervals overlap, and nothing from one trial."""

from typing import Any

import pytest

from snnbench.report import headline
from snnbench.report.findings import find
from tests.fakes import CASE
from tests.recordings import deviating, failed, record, recording, skipped, timed

LARGE = CASE.resized(neurons=96)
EQUIVALENT: dict[str, Any] = {"outcome": {"status": "measured", "verdict": "equivalent"}}


def steady(name: str, *ms: float, **fields: Any) -> list[Any]:
    """A trial for each of these times, all of whose repetitions took as long."""
    made = [timed(name, trial, train=one, **fields) for trial, one in enumerate(ms)]
    for one in made:
        one.phases["train"]["repetitions_ns"] = one.phases["train"]["repetitions_ns"][:1] * 3
    return made


def answers(*records: Any) -> list[tuple[str, str]]:
    return list(headline.section(find(recording(*records))).answers)


def said(*records: Any) -> str:
    ((_, what),) = answers(*records)
    return what


def test_a_lead_is_claimed_where_intervals_lie_apart() -> None:
    records = [*steady("a", 2.0, 2.1, 1.9), *steady("b", 4.0, 4.1, 3.9)]
    assert answers(*records) == [
        ("subtract on cpu, N=48, B=7, T=20", "a was fastest, 2 ms. The next, b, took 2 times as long.")
    ]


def test_overlapping_intervals_are_a_tie() -> None:
    what = said(*steady("a", 2.0, 2.5, 1.9), *steady("b", 2.2, 2.3, 2.1), *steady("c", 9.0, 9.1, 9.2))
    assert what == "Too close to call between a (2 ms) and b (2.2 ms): their intervals overlap."


def test_one_trial_tells_nobody_apart() -> None:
    assert said(*steady("a", 2.0), *steady("b", 9.0)) == (
        "Too close to call between a (2 ms) and b (9 ms): one trial cannot tell them apart."
    )
    section = headline.section(find(recording(*steady("a", 2.0))))
    assert "1 trial: no interval can be given" in section.sentences[1]


def test_an_interval_that_is_lacking_is_not_said_to_overlap() -> None:
    assert said(*steady("a", 2.0, 2.1), *steady("b", 9.0)).endswith("(9 ms): one trial cannot tell them apart.")


def test_many_that_tie_are_counted() -> None:
    what = said(*(one for name in "abcdef" for one in steady(name, 2.0, 3.0)))
    assert what.startswith("Too close to call between a (2.5 ms), b (2.5 ms), c (2.5 ms), d (2.5 ms) and 2 others:")


def test_sizes_with_the_same_leader_are_one_answer() -> None:
    sizes = [CASE.resized(neurons=n) for n in (16, 32, 64)]
    records = [*steady("a", 1.0, 1.0, case=sizes[0]), *steady("b", 2.0, 2.0, case=sizes[0])]
    records += [*steady("a", 2.0, 2.0, case=sizes[1]), *steady("b", 6.0, 6.0, case=sizes[1])]
    records += [*steady("a", 9.0, 9.0, case=sizes[2]), *steady("b", 3.0, 3.0, case=sizes[2])]
    assert answers(*records) == [
        (
            "subtract on cpu, N=16 and 32, B=7, T=20",
            "a was fastest, 1 to 2 ms. The next, b, took 2 to 3 times as long.",
        ),
        ("subtract on cpu, N=64, B=7, T=20", "b was fastest, 3 ms. The next, a, took 3 times as long."),
    ]


def test_what_deviates_or_was_incorrect_is_no_leader() -> None:
    records = [deviating("a", train=0.1), *steady("b", 2.0, 2.0), *steady("c", 1.0, 1.0)]
    records += [failed("c", "incorrect", "wrong", measure="memory")]
    assert said(*records) == "b, 2 ms: the only exact one with a time."


def test_the_equivalent_lead_only_where_nobody_is_exact() -> None:
    rounded = steady("a", 1.0, 1.0, **EQUIVALENT)
    assert said(*rounded, *steady("b", 2.0, 2.0)) == "b, 2 ms: the only exact one with a time."
    what = said(*rounded, *steady("b", 2.0, 2.0, **EQUIVALENT))
    assert what == "a was fastest of the equivalent, 1 ms. The next, b, took 2 times as long."


@pytest.mark.parametrize(("count", "rough"), [(2, True), (4, True), (5, False)])
def test_few_trials_are_said_to_be_few(count: int, rough: bool) -> None:
    section = headline.section(find(recording(*steady("a", *[2.0] * count))))
    assert f"medians of {count} trials" in section.sentences[1]
    assert ("intervals are rough" in section.sentences[1]) is rough


def test_coverage_is_in_words() -> None:
    records = [timed("a", train=1.0), *(failed("b", "oom-device", "full", trial=trial) for trial in range(3))]
    records += [failed("c", "incorrect", "wrong"), skipped("d", "unsupported", "no reset")]
    assert headline.words(records) == "1 of 6 cells measured: 3 out of device memory, 1 incorrect, 1 unsupported"
    assert headline.words([]) == "0 of 0 cells measured"


def test_a_recording_without_times_says_so() -> None:
    section = headline.section(find(recording(record("a", "verify"))))
    assert list(section.sentences) == [
        "1 of 1 cell measured.",
        "Nothing was timed: this recording says who does the same work, not how fast.",
    ]


def test_torn_lines_are_told() -> None:
    from dataclasses import replace

    torn = replace(recording(timed("a", train=1.0)), torn=2)
    assert "2 lines of the recording could not be read" in headline.section(find(torn)).sentences[1]
