"""Tests of report tables of recordings made by hand: rows, numbers, and reasons for missing numbers."""

import re
from typing import Any

import pytest

from snnbench.analysis.results import results_by_case
from snnbench.cases.outcome import Outcome
from snnbench.recording.record import Record
from snnbench.report.wording import title
from tests.fakes import CASE, CUT
from tests.recordings import deviating, failed, record, recording, reported, skipped, timed, weighed

ZERO = CASE.with_(reset="zero", detach_reset=True)


def table(*records: Record, baseline: str = "") -> list[dict[str, str]]:
    """The rows of the only table of a recording with these records, by column."""
    lines = [line for line in reported(recording(*records, baseline=baseline)).splitlines() if "|" in line]
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(header, row, strict=True)) for row in rows]


def remarks(*records: Record) -> list[str]:
    """The remarks below the table."""
    return [line[2:] for line in reported(recording(*records)).splitlines() if line.startswith("- ")]


def column(rows: list[dict[str, str]], name: str) -> list[str]:
    return [row[name] for row in rows]


def test_exact_contenders_are_sorted_by_training_time() -> None:
    rows = table(timed("a", train=3.0, forward=1.0), timed("b", train=2.0, forward=9.0), timed("c", train=10.0))
    assert column(rows, "library") == ["b", "a", "c"]
    assert column(rows, "train ms") == ["2", "3", "10"]
    assert column(rows, "forward ms") == ["9", "1", "-"]
    assert column(rows, "first call ms") == ["50", "50", "50"]


def test_next_timed_phase_sorts_without_training_time() -> None:
    rows = table(timed("a", forward=3.0, inference=1.0), timed("b", forward=2.0, inference=9.0))
    assert column(rows, "library") == ["b", "a"]
    assert [name for name in rows[0] if name.endswith(" ms")][:2] == ["forward ms", "inference ms"]


def test_deviating_contender_comes_last_without_a_ratio() -> None:
    records = [deviating("a", train=1.0), timed("b", train=2.0), timed("c", train=3.0)]
    rows = table(*records, baseline="b")
    assert [(row["library"], row["verdict"], row["ratio"]) for row in rows] == [
        ("b", "exact", "1.00"),
        ("c", "exact", "1.50"),
        ("a", "deviates", "-"),
    ]
    assert remarks(*records) == [
        "a: deviates: fires a step late (up to 3.00% of the spikes differ, gradients by up to 2.0e-02)"
    ]


def test_one_deviating_trial_makes_the_contender_deviate() -> None:
    rows = table(timed("a", 0, train=1.0), deviating("a", trial=1, train=1.0), timed("b", train=2.0))
    assert column(rows, "library") == ["b", "a"]


def test_deviating_baseline_gives_no_ratio() -> None:
    assert "ratio" not in table(deviating("a", train=1.0), timed("b", train=2.0), baseline="a")[0]


def test_ratio_is_to_the_baselines_training_time() -> None:
    records = [timed("a/fast", train=1.0, forward=5.0), timed("a", train=4.0, forward=1.0), timed("b", train=6.0)]
    assert column(table(*records, baseline="a"), "ratio") == ["0.25", "1.00", "1.50"]
    assert column(table(*records, baseline="a/fast"), "ratio") == ["1.00", "4.00", "6.00"]
    assert "ratio" not in table(*records, baseline="norse")[0]


def test_median_floor_of_the_contenders_counts_for_all() -> None:
    records = [
        timed("a", 0, train=3.0, forward=1.0, floors_ms={"train": 2.0, "forward": 0.5}),
        timed("a", 1, train=4.0, floors_ms={"train": 1.0}),
        timed("a", 2, train=5.0, floors_ms={"train": 3.0}),
        timed("b", train=2.0, floors_ms={"train": 1.9}),
        timed("c", train=7.0),
    ]
    rows = table(*records)
    assert [(row["library"], row["x floor"]) for row in rows] == [("b", "1.38"), ("a", "2.76"), ("c", "4.83")]
    assert list(rows[0])[list(rows[0]).index("train ms") + 1] == "x floor"


def test_floor_is_of_its_own_case_and_leading_phase() -> None:
    other = timed("a", case=ZERO, train=4.0, floors_ms={"train": 0.5})
    text = reported(recording(timed("a", train=4.0, forward=1.0, floors_ms={"train": 2.0, "forward": 0.1}), other))
    assert re.findall(r"\| exact \| 4 \| ([\d.]+) \|", text) == ["2.00", "8.00"]
    (row,) = table(timed("a", forward=4.0, inference=1.0, floors_ms={"forward": 2.0, "inference": 1.0}))
    assert row["x floor"] == "2.00"


def test_missing_floor_is_a_dash() -> None:
    """Recordings of schema 1 and memory alone have no floor."""
    rows = table(timed("a", train=1.0), weighed("b"))
    assert [(row["library"], row["x floor"]) for row in rows] == [("a", "-"), ("b", "-")]
    assert "x floor" not in table(weighed("b"))[0]


def test_deviating_contender_may_measure_the_floor_of_others() -> None:
    rows = table(timed("a", train=2.0), deviating("b", train=1.0, floors_ms={"train": 1.0}))
    assert [(row["library"], row["x floor"]) for row in rows] == [("a", "2.00"), ("b", "-")]


def test_baseline_without_a_time_gives_no_ratio() -> None:
    rows = table(failed("a", "timeout", "too slow"), weighed("a"), timed("b", train=2.0), baseline="a")
    assert [(row["library"], row["ratio"]) for row in rows] == [("b", "-"), ("a", "-")]


def test_trials_are_summarised_by_median_and_quartiles() -> None:
    (row,) = table(*(timed("a", trial, train=float(trial + 1)) for trial in range(5)))
    assert (row["train ms"], row["trials"]) == ("3 (2-4)", "5")


def test_flags_of_any_trial_are_shown() -> None:
    (row,) = table(timed("a", 0, train=1.0), timed("a", 1, train=1.0, flags=["contended", "threads"]))
    assert row["trials"] == "2 contended threads"


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0.000123, "0.000123"),
        (0.5, "0.5"),
        (12.34, "12.3"),
        (99.96, "100"),
        (100.4, "100"),
        (999.6, "1000"),
        (123456.0, "123456"),
    ],
)
def test_numbers_have_three_digits(ms: float, shown: str) -> None:
    assert column(table(timed("a", train=ms)), "train ms") == [shown]


def test_memory_is_the_devices_or_else_the_hosts() -> None:
    (row,) = table(weighed("a"))
    assert (row["host peak MiB"], row["retained MiB"]) == ("6", "2")
    (row,) = table(weighed("a", device_mib=16))
    assert (row["device peak MiB"], row["retained MiB"]) == ("16", "1")
    (row,) = table(timed("a", train=1.0))
    assert not [name for name in row if "MiB" in name]


def test_memory_alone_is_a_table_too() -> None:
    assert table(weighed("a"))[0].keys() == {"library", "version", "verdict", "host peak MiB", "retained MiB"}


def test_failures_and_skips_are_listed_with_their_reason_once() -> None:
    records = [
        timed("a", train=1.0),
        *(failed("b", "crash", "died of SIGSEGV", trial=trial) for trial in range(3)),
        skipped("c", "unsupported", "no such reset"),
        timed("d", 0, train=2.0),
        failed("d", "timeout", "no reply\nwithin 9 s", trial=1),
    ]
    assert column(table(*records), "library") == ["a", "d"]
    assert remarks(*records) == [
        "d: failed: timeout: no reply within 9 s",
        "b: failed: crash: died of SIGSEGV",
        "c: skipped: unsupported: no such reset",
    ]


@pytest.mark.parametrize("cell", [{"measure": "memory"}, {"trial": 1}])
def test_one_incorrect_cell_removes_every_number(cell: dict[str, object]) -> None:
    wrong = failed("a", "incorrect", "3 of 100 spikes differ", **cell)
    records = [timed("a", 0, train=12.5), weighed("a"), wrong, timed("b", train=2.0)]
    assert column(table(*records), "library") == ["b"]
    assert remarks(*records) == ["a: failed: incorrect: 3 of 100 spikes differ"]
    assert "12.5" not in reported(recording(*records))


def distant(name: str, **fields: Any) -> Record:
    """A record that deviates by a known distance from the case's own neuron."""
    common = {"compared": 400, "differing": 20, "rate": 0.25, "expected_rate": 0.125, "correct": True}
    common |= {"cosines": {"weight": 0.75}, "gradient_errors": {"weight": 0.5}, "complaints": []}
    outcome = Outcome(status="measured", verdict="deviates", deviation="another neuron", own_rule={"beta": 0.5})
    return record(name, "verify", checks={"common-train": common}, outcome=outcome, **fields)


def test_deviating_contender_is_shown_once_with_its_distance() -> None:
    text = reported(recording(record("a", "verify"), distant("b")))
    assert "| b | yes | 95.00% | 0.25 | 0.125 | 0.750 |" in text
    assert [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ") and "library" not in line] == [
        "| ---",
        "| a",
        "| ---",
        "| b",
    ]
    assert "- b: deviates: another neuron (up to 5.00% of the spikes differ, gradients by up to 5.0e-01)" in text


def test_each_case_has_a_table_with_its_own_title() -> None:
    cases = [CASE, ZERO, *(CASE.with_(**change) for change in CHANGES)]
    text = reported(recording(*(timed("a", case=case, train=1.0) for case in cases)))
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert len(headings) == len(set(headings)) == len(cases)


CHANGES = [
    *({name: 3} for name in ("neurons", "batch", "time_steps", "layers", "threads", "seed")),
    *({name: 0.25} for name in ("beta", "threshold", "slope", "input_rate")),
    {"device": "cuda"},
    {"dtype": "float64"},
    {"precision": "tf32"},
    {"surrogate": "atan"},
    {"detach_reset": True},
    {"input_gradient": False},
    {"input_kind": "gaussian"},
    {"chunk_steps": 5},
    CUT,
]
"""A change of every field of a case except the workload, which has only one value."""


def test_every_field_of_a_case_is_in_its_title() -> None:
    changed = {name for change in CHANGES for name in change} | {"reset", "workload"}
    assert changed == set(CASE.names())
    assert title(CASE) not in {title(CASE.with_(**change)) for change in CHANGES}


def test_cases_are_sorted_by_size() -> None:
    sizes = [(16, 2), (16, 11), (128, 3), (1024, 1)]
    records = [timed("a", case=CASE.with_(neurons=n, batch=b), train=1.0) for n, b in reversed(sizes)]
    assert [(case.neurons, case.batch) for case in results_by_case(records)] == sizes


def test_heading_of_a_recording_has_machine_and_coverage() -> None:
    records = [timed("a", train=1.0), weighed("a"), failed("b", "crash", "x"), skipped("c", "unsupported", "y")]
    first = reported(recording(*records, name="monday", model="a laptop")).splitlines()[:3]
    assert first == ["## monday", "", "a laptop. 2 of 4 cells measured: 1 crashed, 1 unsupported."]


def test_level_of_headings() -> None:
    text = reported(recording(timed("a", train=1.0), name="monday"), level=3)
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == ["monday"]
    assert text.endswith("format\n") and not text.endswith("\n\n")


def test_empty_recording_is_a_heading() -> None:
    assert reported(recording()) == "## one\n\na laptop. 0 of 0 cells measured.\n"


def test_reason_is_shown_as_it_is_and_not_taken_for_markup() -> None:
    (remark,) = remarks(failed("a", "crash", "TypeError: <class 'x'> of __init__ and `<code>`,\n# in f(*args)"))
    assert remark == r"a: failed: crash: TypeError: \<class 'x'> of \_\_init\_\_ and `<code>`, # in f(\*args)"
