"""Tests that the answer claims only a lead that the test of `rank` finds, and no lead from one trial."""

from typing import Any

import pytest

from snnbench.cases.outcome import Outcome
from snnbench.report import answer
from snnbench.report.overview import about_intervals, find
from snnbench.report.page import sections
from tests.fakes import CASE
from tests.recordings import deviating, failed, record, recording, skipped, timed

LARGE = CASE.with_(neurons=96)
EQUIVALENT: dict[str, Any] = {"outcome": Outcome(status="measured", verdict="equivalent")}


def steady(name: str, *ms: float, **fields: Any) -> list[Any]:
    """A trial for each of these times, with equal repetitions."""
    made = [timed(name, trial, train=one, **fields) for trial, one in enumerate(ms)]
    for trial_record in made:
        train = trial_record.phases["train"]
        train["repetitions_ns"] = train["repetitions_ns"][:1] * 3
    return made


def answers(*records: Any) -> list[tuple[str, str]]:
    return list(sections.headline(find(recording(*records))).answers)


def sentence(*records: Any) -> str:
    ((_, text),) = answers(*records)
    return text


def test_lead_is_claimed_if_the_others_are_slower() -> None:
    records = [*steady("a", 2.0, 2.1, 1.9), *steady("b", 4.0, 4.1, 3.9)]
    assert answers(*records) == [
        (
            "reset by subtraction, CPU: 48 neurons, batch 7, 20 steps",
            "a (2 ms) leads. It is 2 times as fast as the next, b.",
        )
    ]


def test_separate_intervals_alone_make_no_lead() -> None:
    """A bootstrap interval of two trials ends at the trials: 2 to 2.2 and 2.3 to 3, 1.6 standard errors apart."""
    overview = find(recording(*steady("a", 2.0, 2.2), *steady("b", 2.3, 3.0)))
    first, second = overview.points(CASE, "train")
    assert first.high and second.low and first.high < second.low
    ((_, text),) = sections.headline(overview).answers
    assert text == "Too close to call between a (2.1 ms) and b (2.65 ms): no difference above 5 % is certain."


def test_contended_contender_has_no_lead() -> None:
    disturbed = steady("a", 2.0, 2.1, 1.9, flags=["contended"])
    text = sentence(*disturbed, *steady("b", 4.0, 4.1, 3.9))
    assert text == "Too close to call between a (2 ms) and b (4 ms): others disturbed a."


def test_difference_below_the_floor_makes_no_lead() -> None:
    assert sentence(*steady("a", 2.0, 2.0, 2.0), *steady("b", 2.1, 2.1, 2.1)).startswith("Too close to call between a")
    assert sentence(*steady("a", 2.0, 2.0, 2.0), *steady("b", 2.12, 2.12, 2.12)).startswith("a (2 ms) leads.")


def test_contender_with_a_failed_trial_is_left_out() -> None:
    records = [*steady("a", 1.0, 1.0), failed("a", "timeout", "no answer", trial=2), *steady("b", 2.0, 2.0)]
    left = "Left out, for a trial of theirs failed: a."
    assert sentence(*records) == f"b (2 ms) is the only exact one without a failed trial. {left}"
    text = sentence(*records, *steady("c", 6.0, 6.0))
    assert text == f"b (2 ms) leads. It is 3 times as fast as the next, c. {left}"


def test_difference_within_the_noise_is_a_tie() -> None:
    text = sentence(*steady("a", 2.0, 2.5, 1.9), *steady("b", 2.2, 2.3, 2.1), *steady("c", 9.0, 9.1, 9.2))
    apart = "no difference above 5 % between them is certain. a is 4.55 times as fast as the next, c."
    assert text == f"a (2 ms) and b (2.2 ms) lead; {apart}"


def test_one_trial_shows_a_large_factor_only() -> None:
    assert sentence(*steady("a", 2.0), *steady("b", 5.9)) == (
        "a (2 ms) is in front of b (5.9 ms), but one trial shows no difference below a factor of 3."
    )
    assert sentence(*steady("a", 2.0), *steady("b", 6.1)).startswith(
        "a (2 ms) leads for certain. It is 3.05 times as fast"
    )
    section = sections.headline(find(recording(*steady("a", 2.0))))
    assert "1 trial: no interval can be given" in section.closing[-1]


def test_single_trial_beside_several_decides_by_the_rule_of_a_race() -> None:
    assert sentence(*steady("a", 2.0, 2.1), *steady("b", 9.0)).startswith("a (2.05 ms) leads for certain.")


def test_race_is_of_those_without_a_failed_cell() -> None:
    records = [*steady("a", 1.0), *steady("b", 2.0), *steady("c", 2.1)]
    text = sentence(*records, failed("a", "oom-host", "full", measure="memory"))
    assert text.startswith("b (2 ms) is in front of c (2.1 ms), but one trial shows no difference")


def test_many_ties_are_counted() -> None:
    text = sentence(*(one for name in "abcdef" for one in steady(name, 2.0, 3.0)))
    assert text.startswith("Too close to call between a (2.5 ms), b (2.5 ms), c (2.5 ms), d (2.5 ms) and 2 others:")


def test_sizes_with_the_same_leader_are_one_answer() -> None:
    sizes = [CASE.with_(neurons=n) for n in (16, 32, 64)]
    records = [*steady("a", 1.0, 1.0, case=sizes[0]), *steady("b", 2.0, 2.0, case=sizes[0])]
    records += [*steady("a", 2.0, 2.0, case=sizes[1]), *steady("b", 6.0, 6.0, case=sizes[1])]
    records += [*steady("a", 9.0, 9.0, case=sizes[2]), *steady("b", 3.0, 3.0, case=sizes[2])]
    assert answers(*records) == [
        (
            "reset by subtraction, CPU: 16 and 32 neurons, batch 7, 20 steps",
            "a (1 to 2 ms) leads. It is 2 to 3 times as fast as the next, b.",
        ),
        (
            "reset by subtraction, CPU: 64 neurons, batch 7, 20 steps",
            "b (3 ms) leads. It is 3 times as fast as the next, a.",
        ),
    ]


def test_deviating_or_incorrect_contender_does_not_lead() -> None:
    records = [deviating("a", train=0.1), *steady("b", 2.0, 2.0), *steady("c", 1.0, 1.0)]
    records += [failed("c", "incorrect", "wrong", measure="memory")]
    assert sentence(*records) == "b (2 ms) is the only exact one with a time."


def test_equivalent_contender_leads_only_without_an_exact_one() -> None:
    rounded = steady("a", 1.0, 1.0, **EQUIVALENT)
    assert sentence(*rounded, *steady("b", 2.0, 2.0)) == "b (2 ms) is the only exact one with a time."
    text = sentence(*rounded, *steady("b", 2.0, 2.0, **EQUIVALENT))
    assert text == "a (1 ms) leads of the equivalent ones. It is 2 times as fast as the next, b."


@pytest.mark.parametrize(("count", "rough"), [(2, True), (4, True), (5, False)])
def test_few_trials_are_pointed_out(count: int, rough: bool) -> None:
    section = sections.headline(find(recording(*steady("a", *[2.0] * count))))
    assert f"medians of {count} trials" in section.closing[-1]
    assert ("too narrow" in section.closing[-1]) is rough


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([1], ""),
        ([5, 1], ", with a 95 % interval where there were several trials"),
        ([2, 4], ", with an interval (too narrow where there were only 2 to 4 trials)"),
        ([3, 5], ", with an interval (95 %, but too narrow where there were only 3 trials)"),
    ],
)
def test_interval_states_its_confidence_from_five_trials_on(counts: list[int], words: str) -> None:
    records = [one for name, count in zip("ab", counts, strict=False) for one in steady(name, *[2.0] * count)]
    assert about_intervals(find(recording(*records)).points(CASE, "train")) == words


def test_coverage_is_in_words() -> None:
    records = [timed("a", train=1.0), *(failed("b", "oom-device", "full", trial=trial) for trial in range(3))]
    records += [failed("c", "incorrect", "wrong"), skipped("d", "unsupported", "no reset")]
    assert (
        answer.coverage(recording(*records))
        == "1 of 6 cells measured: 3 out of device memory, 1 incorrect, 1 unsupported"
    )
    assert answer.coverage(recording()) == "0 of 0 cells measured"


def test_recording_without_times_is_pointed_out() -> None:
    section = sections.headline(find(recording(record("a", "verify"))))
    assert list(section.sentences) == [
        "Nothing was timed: this recording says who does the same work, not how fast.",
    ]
    assert list(section.closing) == ["1 of 1 cell measured."]


def test_torn_lines_are_counted() -> None:
    from dataclasses import replace

    torn = replace(recording(timed("a", train=1.0)), torn=2)
    assert "2 lines of the recording could not be read" in sections.headline(find(torn)).closing[1]


def test_next_and_last_are_named_with_their_factors() -> None:
    times = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 7.0}
    text = sentence(*(one for name, ms in times.items() for one in steady(name, ms, ms)))
    assert text == "a (1 ms) leads. It is 2 times as fast as the next, b, and 7 times as fast as the slowest, d."


def test_summary_of_many_cases_counts_the_cases_that_each_leads() -> None:
    """Five cases have four answers, more than a summary lists."""
    cases = [CASE.with_(neurons=neurons) for neurons in (16, 24, 32, 40, 48)]
    first = [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a"), ("b", "a")]
    records = []
    for case, (fast, slow) in zip(cases, first, strict=True):
        records += [*steady(fast, 1.0, 1.0, case=case), *steady(slow, 3.0, 3.0, case=case)]
    records += [failed("c", "oom-host", "full", case=cases[0])]
    assert answer.summary(find(recording(*records))) == [
        "In front, alone or with others that cannot be told apart, of 5 cases: b (3) and a (2).",
        "The next took 3 times as long, the slowest 3 times.",
        "1 cell failed: 1 out of host memory.",
    ]
    assert len(answer.answers(find(recording(*records)))) == 4
