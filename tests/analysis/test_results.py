"""Tests of results of records made by hand: the result of each trial, and every timed metric."""

from typing import Any

import pytest

from snnbench.analysis.results import results_by_case
from snnbench.cases.outcome import Outcome
from snnbench.recording.record import Record
from snnbench.report.wording import title
from tests.fakes import CASE, DIVIDED
from tests.recordings import MIB, deviating, failed, record, skipped, timed, weighed


def order(*records: Record) -> list[str]:
    """The contenders of these records, in the order of a table."""
    (results,) = results_by_case(records).values()
    return [result.contender for result in results]


def equivalent(name: str, **fields: Any) -> Record:
    """A cell with the verdict `equivalent`: right within a format of fewer digits."""
    return timed(name, outcome=Outcome(status="measured", verdict="equivalent"), **fields)


def test_results_are_sorted_by_verdict_before_speed() -> None:
    """Exact, equivalent, deviating, without a time. Here later verdicts are faster, and names run the other way."""
    records = [
        *[failed("a", "crash", "died"), deviating("b", train=1.0), equivalent("c", train=2.0), timed("d", train=9.0)],
        *[skipped("e", "unsupported", "no reset"), equivalent("f", train=1.5), timed("g", train=8.0)],
    ]
    assert order(*records) == ["g", "d", "f", "c", "b", "a", "e"]
    assert order(*reversed(records)) == ["g", "d", "f", "c", "b", "a", "e"]


def test_cases_are_sorted_by_their_number_of_devices() -> None:
    cases = [DIVIDED.with_(devices=devices) for devices in range(1, 9)]
    assert list(results_by_case(timed("a", case=case, train=1.0) for case in reversed(cases))) == cases


def test_untimed_deviating_result_precedes_a_failed_one() -> None:
    verified = record("b", "verify", outcome=Outcome(status="measured", verdict="deviates", deviation="fires late"))
    assert order(failed("a", "crash", "died"), verified, skipped("c", "unsupported", "no reset")) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("train", "forward"), ("forward", "backward"), ("backward", "inference"), ("train", "inference")],
)
def test_leading_phase_decides_the_order(first: str, second: str) -> None:
    assert order(timed("a", **{second: 1.0}), timed("b", **{first: 9.0})) == ["b", "a"]
    assert order(timed("a", **{first: 9.0, second: 1.0}), timed("b", **{first: 8.0, second: 7.0})) == ["b", "a"]


def test_equal_times_are_sorted_by_name() -> None:
    assert order(timed("b", train=1.0), timed("a", train=1.0)) == ["a", "b"]


def test_cases_are_sorted_by_format_before_size() -> None:
    cases = [CASE.with_(neurons=96), CASE.with_(dtype="float64")]
    assert list(results_by_case(timed("a", case=case, train=1.0) for case in reversed(cases))) == cases


def test_version_is_that_of_a_trial_that_knows_it() -> None:
    unknown = failed("a", "environment", "no network", version=None)
    for records, version in (([unknown, timed("a", 1, train=1.0, version="2.1")], "2.1"), ([unknown], "")):
        (result,) = results_by_case(records)[CASE]
        assert result.version == version


def test_lowest_verdict_of_the_trials_counts() -> None:
    records = [timed("a", 0, train=1.0), equivalent("a", trial=1, train=1.0), timed("b", train=9.0)]
    (a,) = (one for one in results_by_case(records)[CASE] if one.contender == "a")
    assert a.verdict == "equivalent" and order(*records) == ["b", "a"]


def test_result_has_trials_and_repetitions_in_trial_order() -> None:
    records = [timed("a", 1, train=4.0, forward=1.0), weighed("a"), timed("a", 0, train=3.0)]
    (result,) = results_by_case(records)[CASE]
    assert result.summaries["train", "time"].trials == (3e6, 4e6)
    assert result.summaries["forward", "time"].trials == (1e6,)
    assert result.summaries["train", "host_peak"].trials == (6 * MIB,)
    assert result.repetitions == {
        "train": [(3e6, 3e6, 13.5e6), (4e6, 4e6, 18e6)],
        "forward": [(1e6, 1e6, 4.5e6)],
    }, "repetitions of two passes each, the last of them 4.5 times as long"


def test_incorrect_result_has_no_times() -> None:
    (result,) = results_by_case([timed("a", train=4.0), failed("a", "incorrect", "3 spikes differ", trial=1)])[CASE]
    assert (result.summaries, result.repetitions) == ({}, {})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {},
            "subtract: N=48, B=7, T=20 on cpu, float32 (ieee), beta=0.91, threshold=1, fast_sigmoid(1), "
            "input rate 0.2, 1 thread, seed 7",
        ),
        (
            {"layers": 2, "threads": 2, "input_gradient": False, "reset": "zero", "detach_reset": True},
            "zero: N=48, B=7, T=20, L=2 on cpu, float32 (ieee), beta=0.91, threshold=1, fast_sigmoid(1), "
            "input rate 0.2, no gradient of the input, 2 threads, seed 7",
        ),
        (
            {"input_kind": "gaussian", "device": "cuda", "precision": "tf32", "slope": 2.5},
            "subtract: N=48, B=7, T=20 on cuda, float32 (tf32), beta=0.91, threshold=1, fast_sigmoid(2.5), "
            "gaussian input at rate 0.2, 1 thread, seed 7",
        ),
    ],
)
def test_title_names_every_distinguishing_field(changes: dict[str, Any], text: str) -> None:
    assert title(CASE.with_(**changes)) == text


def test_deviating_result_has_deviation_distance_and_rule() -> None:
    check = {"compared": 200, "differing": 50, "gradient_errors": {"weight": 0.25}, "complaints": []}
    common = {"compared": 400, "differing": 20, "gradient_errors": {"weight": 0.5}, "complaints": []}
    outcome = Outcome(status="measured", verdict="deviates", deviation="fires late", own_rule={"slope": 1.0})
    records = [
        failed("a", "timeout", "no reply", measure="time"),
        timed("a", 1, train=1.0, outcome=outcome, checks={"spot-train": check, "common-train": common}),
    ]
    (result,) = results_by_case(records)[CASE]
    assert (result.own_rule, result.deviation, result.distance) == (True, "fires late", common)
    assert result.reasons == [
        "deviates: fires late (up to 5.00% of the spikes differ, gradients by up to 5.0e-01)",
        "failed: timeout: no reply",
    ]
    assert result.failure == "failed: timeout: no reply"
    (other,) = results_by_case([deviating("b", train=1.0)])[CASE]
    assert (other.own_rule, other.distance) == (False, None)
    assert other.reasons == [
        "deviates: fires a step late (up to 3.00% of the spikes differ, gradients by up to 2.0e-02)"
    ]
    nothing = {"compared": 0, "differing": 0, "gradient_errors": {}, "complaints": []}
    (third,) = results_by_case([timed("c", train=1.0, outcome=outcome, checks={"exam-1": nothing})])[CASE]
    assert third.reasons == ["deviates: fires late (up to 0.00% of the spikes differ)"]


def test_median_floor_of_a_phase_counts_for_all() -> None:
    records = [
        timed("a", train=9.0, forward=3.0, floors_ms={"train": 2.0, "forward": 1.0}),
        timed("b", train=8.0, floors_ms={"train": 1.5}),
        timed("b", 1, train=8.0, floors_ms={"train": 2.5}),
    ]
    assert [result.floors_ns for result in results_by_case(records)[CASE]] == [{"train": 1.75e6, "forward": 1e6}] * 2
