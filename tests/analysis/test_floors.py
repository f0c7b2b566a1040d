"""Tests of the floor of a case: the median over contenders, which one that lies cannot move."""

from dataclasses import asdict
from pathlib import Path

import pytest

from snnbench import checking
from snnbench.analysis import floors
from snnbench.analysis.results import results_by_case
from snnbench.recording import reading
from snnbench.recording.record import Record
from snnbench.worker.floor import CALL, COPY, Peak
from tests.fakes import CASE
from tests.recordings import reported, timed
from tests.shipped import QUICK, Document, copied, edited_record


def floored(name: str, trial: int, floor_ms: float, train: float = 9.0) -> Record:
    return timed(name, trial, train=train, floors_ms={"train": floor_ms})


@pytest.mark.parametrize(
    ("floors_ms", "of_case"),
    [
        ([2.0], 2.0),
        ([1.0, 2.0, 4.0], 2.0),
        ([2.0, 2.0, 3.0, 9.0], 2.5),  # a contender that was disturbed in all trials
        ([1e-5, 2.0], 2.0),
        ([1e-5, 1e-5, 2.0, 4.0], 3.0),
        ([0.4, 1.9, 2.0, 2.1], 2.0),
        ([0.5, 1.9, 2.0, 2.1], 1.95),
    ],
)
def test_floor_of_a_case_is_the_median_without_what_is_under_a_quarter(floors_ms: list[float], of_case: float) -> None:
    records = [floored(f"of {number}", 0, each) for number, each in enumerate(floors_ms)]
    assert floors.of_case([*records, timed("of schema 1", train=1.0)]) == {"train": of_case * 1e6}


def test_trials_beside_other_load_change_no_floor_and_accuse_nobody() -> None:
    records = [floored(name, trial, floor) for name in "ab" for trial, floor in enumerate([9.0, 2.0, 9.0])]
    assert floors.of_case(records) == {"train": 2e6} and not [*floors.complaints(records)]
    assert not [*floors.complaints([floored("a", 0, 9.0), floored("a", 1, 2.0)])]


def test_floor_of_a_quarter_of_the_others_is_no_lie() -> None:
    assert not [*floors.complaints(floored(f"of {number}", 0, ms) for number, ms in enumerate([0.5, 2.0, 2.0, 2.0]))]


def test_floor_of_a_liar_is_not_used_and_is_reported() -> None:
    honest = [floored(name, trial, 4.0 + trial) for name in ("a", "b") for trial in range(3)]
    lying = [floored("liar", trial, 1e-5) for trial in range(3)]
    for result in results_by_case([*honest, *lying])[CASE]:
        assert result.floors_ns == {"train": 4e6}
    assert list(floors.complaints(honest)) == []
    complaint = "train: its floor of 1e-05 ms is far below the case's floor of 4 ms"
    assert list(floors.complaints([*honest, *lying])) == [(record, complaint) for record in lying]


def test_time_far_below_the_floor_of_the_other_processes_is_not_shown() -> None:
    honest = [floored(name, trial, 4.0) for name in ("a", "b") for trial in range(3)]
    records = [*honest, *(floored("liar", trial, 2.1, 2.1) for trial in range(3))]
    *others, liar = sorted(results_by_case(records)[CASE], key=lambda result: result.contender)
    assert all(each.verdict == "exact" and ("train", "time") in each.summaries for each in others)
    why = "failed: below-floor: a pass of train took 2.1 ms, and the case's floor is 4 ms"
    assert (liar.contender, liar.verdict, liar.summaries, liar.repetitions) == ("liar", "", {}, {})
    assert liar.failure == why
    complaints = [text for _, text in floors.complaints(records)]
    assert complaints == ["train: its time of 2.1 ms is far below the case's floor of 4 ms"] * 3


@pytest.mark.parametrize("rates", [{}, {"0": 0.1}])
def test_time_that_few_spikes_of_a_hidden_layer_explain_is_shown(rates: dict[str, float]) -> None:
    """Five products of 1 ms, of which two are with the hidden spikes: the bound is 5 ms, or 3.2 ms."""
    case = CASE.with_(layers=2, input_rate=1.0, input_gradient=False)
    names = ("current", "weight_gradient", "input_gradient")
    peaks = {name: asdict(Peak(300, 1, 0, [1_000_000])) for name in names}
    peaks |= {name: asdict(Peak(100, 1, 0, [1])) for name in (COPY, CALL)}
    checks = {"spot-train": {"rates": rates}}
    given = {"case": case, "floors_ms": {"train": 5.0}, "peaks": peaks, "checks": checks}
    records = [timed("dense", train=6.0, **given), timed("event", train=2.2, **given)]
    assert [record.library for record, _ in floors.complaints(records)] == ([] if rates else ["event"])


def test_recording_with_a_floor_that_a_liar_measured_keeps_its_numbers_and_is_found(tmp_path: Path) -> None:
    """Its peaks and its floor agree with each other, and are a thousandth of what they were."""

    def lower(record: Document) -> None:
        for peak in record["peaks"].values():
            peak["passes"] *= 1000
        for timing in record["phases"].values():
            timing["floor_ns"] /= 1000
            timing["times_floor"] *= 1000

    folder = copied(tmp_path, QUICK)
    assert not checking.check(folder)
    before = reported(reading.read(folder))
    edited_record(folder, "time", lower)
    found = checking.check(folder)
    assert {one.rule for one in found} == {"floor"}
    assert all("is far below the case's floor" in one.text for one in found)
    after = reported(reading.read(folder))
    changed = sum(old != new for old, new in zip(before.splitlines(), after.splitlines(), strict=True))
    assert changed == 3, "the ratios of one case, by a little"
