"""Tests of trials that end in different ways: they are said everywhere, and a refusal in some takes all numbers."""

from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from snnbench.analysis import endings
from snnbench.analysis.compare import compare
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.rank import rank
from snnbench.analysis.results import results_by_case
from tests.fakes import CASE
from tests.recordings import failed, recording, reported, skipped, timed, weighed
from tests.shipped import copied, edited_record

FAST = [timed("a", trial, train=1.0) for trial in range(3)]
REFUSING = [skipped("a", "unsupported", "not today", trial=trial) for trial in (3, 4)]
CRASHING = [failed("a", "crash", "died of SIGSEGV", trial=3)]
OTHERS = [timed("b", trial, train=2.0) for trial in range(5)]


@pytest.mark.parametrize(
    ("records", "counts"),
    [
        ([*FAST, *REFUSING], {"measured": 3, "unsupported": 2}),
        ([*FAST, *CRASHING], {"measured": 3, "crash": 1}),
        (FAST, {}),
        (REFUSING, {}),
        *[
            ([*FAST, failed("a", kind, "of a busy machine", trial=3)], {})
            for kind in ("environment", "oom-device", "oom-host", "timeout", "lost", "cancelled")
        ],
        ([*FAST, skipped("a", "unavailable", "no counter", trial=3)], {}),
        (
            [*FAST, weighed("a"), skipped("a", "unsupported", "no memory", measure="memory", trial=9)],
            {"measured": 1, "unsupported": 1},
        ),
        ([weighed("a"), *REFUSING], {}),  # memory and time are apart
    ],
)
def test_only_measured_and_other_trials_of_one_measure_differ(records: Any, counts: dict[str, int]) -> None:
    assert endings.differing(records) == counts


def test_contender_that_refuses_some_trials_has_no_time() -> None:
    records = [*FAST, *REFUSING, *OTHERS]
    said = "failed: trials end differently: 3 measured, 2 unsupported"
    result = next(one for one in results_by_case(records)[CASE] if one.contender == "a")
    assert (result.verdict, result.summaries, result.repetitions) == ("", {}, {})
    assert result.reasons == [said, "skipped: unsupported: not today"]
    assert f"- a: {said}" in reported(recording(*records, baseline="b"))
    (ranking,) = rank(recording(*records, baseline="b"), "b", Thresholds()).rankings
    assert [entry.contender for entry in ranking.entries] == ["b"] and ranking.apart == [("a", said)]
    cell = next(
        c for c in compare(recording(*OTHERS, *FAST), recording(*records), Thresholds()).each if c.contender == "a"
    )
    assert (cell.word, cell.reason) == ("failed", f"in new: {said}")


def test_contender_that_crashes_in_a_trial_keeps_its_times_and_it_is_said() -> None:
    records = [*FAST, *CRASHING, *OTHERS]
    assert "- a: trials end differently: 3 measured, 1 crash" in reported(recording(*records))
    cells = compare(recording(*OTHERS, *FAST), recording(*records), Thresholds()).each
    assert ("failed", "in new: failed: crash: died of SIGSEGV") in [(cell.word, cell.reason) for cell in cells]


def test_check_finds_trials_that_end_differently(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    refused = {"status": "skipped", "kind": "unsupported", "reason": "not today"}
    empty: dict[str, Any] = {"phases": {}, "peaks": {}, "flags": [], "wall_s": None}
    edited_record(folder, "time", lambda one: one.update(outcome=refused, **empty))
    (complaint,) = checking.check(folder)
    assert complaint.rule == "trials" and "trials end differently: 1 measured, 1 unsupported" in complaint.text
