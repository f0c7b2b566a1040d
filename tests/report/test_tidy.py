"""Tests of tidy tables: a row for each case, contender, trial, phase and metric, and no row for unproved work."""

import csv
import io
import json
import os
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from snnbench.exits import UserError
from snnbench.recording import reading
from snnbench.recording.reading import Recording
from snnbench.report import tidy
from tests import in_process
from tests.documents import ROOT
from tests.fakes import CASE
from tests.recordings import MIB, failed, record, recording, skipped, timed, weighed

LARGE = CASE.with_(neurons=96)


def written(*recordings_: Recording) -> list[dict[str, str]]:
    """The rows of the CSV."""
    return list(csv.DictReader(io.StringIO(tidy.to_csv(tidy.rows(recordings_)))))


def test_row_for_each_case_contender_trial_phase_and_metric() -> None:
    records = [
        timed(name, trial, case, train=3.0, forward=1.0)
        for name in ("norse/box", "norse/lif", "sinabs")
        for trial in (0, 1)
        for case in (CASE, LARGE)
    ]
    rows = written(recording(*records))
    identities = [
        tuple(row[column] for column in ("library", "variant", "neurons", "trial", "phase", "metric")) for row in rows
    ]
    assert len(set(identities)) == len(rows) == len(records) * 2 * 2
    assert {row["status"] for row in rows} == {"measured"}


def test_first_call_has_the_build_if_it_was_recorded() -> None:
    made = timed("a", train=3.0, first_call_ms=50.0)
    made.phases["train"]["build_ns"] = 7_000_000
    assert {row["value"] for row in written(recording(made)) if row["metric"] == "first_call"} == {"57000000.0"}


def test_time_is_the_median_repetition_per_pass() -> None:
    rows = written(recording(timed("norse/box", train=3.0)))
    values = {(row["phase"], row["metric"]): (float(row["value"]), row["unit"]) for row in rows}
    assert values == {("train", "time"): (3e6, "ns"), ("train", "first_call"): (50e6, "ns")}


def test_measured_floor_and_its_ratio_are_rows() -> None:
    rows = written(recording(timed("norse/box", train=3.0, forward=1.0, floors_ms={"train": 2.0})))
    values = {(row["phase"], row["metric"]): (float(row["value"]), row["unit"]) for row in rows}
    assert values.keys() - {(phase, name) for phase in ("train", "forward") for name in ("time", "first_call")} == {
        ("train", "floor"),
        ("train", "times_floor"),
    }
    assert values["train", "floor"] == (2e6, "ns")
    assert values["train", "times_floor"] == (1.5, "ratio")


def test_device_time_is_the_median_of_its_own_repetitions() -> None:
    made = timed("norse/box", train=3.0)
    made.phases["train"] |= {"device_ns": [10, 20, 30], "passes": 2}
    values = {row["metric"]: float(row["value"]) for row in written(recording(made)) if row["phase"] == "train"}
    assert values == {"time": 3e6, "device_time": 10.0, "first_call": 50e6}
    made.phases["train"]["device_ns"] = []
    assert {row["metric"] for row in written(recording(made))} == {"time", "first_call"}


def test_zero_bytes_are_a_row() -> None:
    made = weighed("norse/box", host_mib=0)
    made.memory["static_bytes"] = 0
    rows = {row["metric"]: float(row["value"]) for row in written(recording(made))}
    assert (rows["static"], rows["host_peak"]) == (0, 0)


def test_memory_is_a_row_for_each_device_and_kind() -> None:
    rows = written(recording(weighed("norse/box", device_mib=16)))
    assert {row["phase"] for row in rows} == {"train"}
    assert {row["metric"]: float(row["value"]) / MIB for row in rows} == {
        "static": 1,
        "host_before": 100,
        "host_peak": 6,
        "host_retained": 2,
        "device_peak": 16,
        "device_retained": 1,
    }, "None has no row"


def test_every_row_identifies_its_cell() -> None:
    (row, _) = written(recording(timed("norse/box", 1, train=3.0, flags=["contended"], version="2.1"), name="monday"))
    assert {name: row[name] for name in ("recording", "library", "variant", "version", "trial", "measure")} == {
        "recording": "monday",
        "library": "norse",
        "variant": "box",
        "version": "2.1",
        "trial": "1",
        "measure": "time",
    }
    assert (row["verdict"], row["flags"], row["kind"], row["reason"]) == ("exact", "contended", "", "")
    own = {name: str(value) for name, value in CASE.as_dict().items() if name in tidy.CASE_FIELDS}
    assert own == {name: row[name] for name in own}
    assert {row[name] for name in tidy.CASE_FIELDS if name not in own} == {""}


def test_unmeasured_cell_is_a_row_with_its_reason() -> None:
    rows = written(recording(failed("norse", "crash", "died of SIGSEGV"), skipped("sinabs", "unsupported", "no reset")))
    assert [(row["library"], row["status"], row["kind"], row["reason"]) for row in rows] == [
        ("norse", "failed", "crash", "died of SIGSEGV"),
        ("sinabs", "skipped", "unsupported", "no reset"),
    ]
    assert {row[name] for row in rows for name in ("phase", "metric", "unit", "value")} == {""}


def test_one_incorrect_cell_removes_every_value() -> None:
    """Its other processes' measurements are not proved to be of the right work."""
    wrong = "exam: 3 of 100 spikes differ"
    for cell in ({"measure": "memory"}, {"trial": 1}):
        rows = written(
            recording(
                timed("norse/box", 0, train=3.0),
                weighed("norse/box"),
                failed("norse/box", "incorrect", wrong, **cell),
                timed("norse/lif", 0, train=4.0),
                timed("norse/box", 0, LARGE, train=9.0),
                timed("sinabs", 0, train=5.0),
            )
        )
        with_values = {(row["library"], row["variant"], row["neurons"]) for row in rows if row["value"]}
        assert with_values == {("norse", "lif", "48"), ("norse", "box", "96"), ("sinabs", "default", "48")}
        assert wrong in {row["reason"] for row in rows}


def test_incorrect_cell_does_not_affect_another_recording() -> None:
    bad = recording(failed("norse", "incorrect", "wrong"), timed("norse", 1, train=1.0), name="bad")
    good = recording(timed("norse", train=2.0), name="good")
    assert {row["recording"] for row in written(bad, good) if row["value"]} == {"good"}


def test_verified_cell_is_a_row_with_its_verdict() -> None:
    (row,) = written(recording(record("norse", "verify")))
    assert (row["measure"], row["verdict"], row["value"]) == ("verify", "exact", "")


def test_parquet_without_pyarrow_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match="Parquet needs pyarrow; get it with: pip install pyarrow"):
        tidy.to_parquet([])
    done = in_process.run(["site", str(ROOT / "results"), "-o", "site"], tmp_path, {**os.environ})
    assert "Parquet needs pyarrow" in done.stderr and not list(tmp_path.iterdir()), "before anything is written"


def test_parquet_file_has_the_same_rows_and_fixed_types() -> None:
    table = tidy.rows([recording(timed("norse/box", train=3.0), failed("norse", "crash", "died"))])
    read = pq.read_table(io.BytesIO(tidy.to_parquet(table)))
    assert read.column_names == tidy.COLUMNS
    assert read.to_pylist() == [{name: row.get(name) for name in tidy.COLUMNS} for row in table]
    assert read.schema == pq.read_schema(io.BytesIO(tidy.to_parquet([])))
    types = {name: str(read.schema.field(name).type) for name in tidy.COLUMNS}
    assert {name for name, kind in types.items() if kind == "double"} == {
        *("alpha", "beta", "threshold", "slope", "input_rate", "dt", "amplitude", "learning_rate", "value")
    }
    assert {name for name, kind in types.items() if kind == "bool"} == {
        *("detach_reset", "input_gradient", "carried_gradient")
    }
    assert {name for name, kind in types.items() if kind == "int64"} == {
        *(
            "neurons",
            "chunk_steps",
            "batch",
            "time_steps",
            "layers",
            "devices",
            "width",
            "samples",
            "workers",
            "threads",
            "seed",
            "trial",
        )
    }


def test_every_column_is_documented_with_its_type() -> None:
    section = (ROOT / "docs" / "reference" / "tidy.md").read_text().partition("## Columns\n")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", section, re.MULTILINE))
    assert list(documented) == tidy.COLUMNS
    kinds = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}
    assert documented == {name: kinds[tidy.TYPES.get(name, "str")] for name in documented}


def test_every_metric_of_a_recording_is_documented() -> None:
    section = (ROOT / "docs" / "reference" / "tidy.md").read_text().partition("## Metrics\n")[2]
    documented = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    recordings = [reading.read(path.parent) for path in sorted((ROOT / "results").glob("*/records.jsonl"))]
    measured = {row["metric"] for row in tidy.rows(recordings) if "metric" in row}
    assert {"time", "floor", "host_peak"} <= measured <= documented


def test_empty_table_has_its_columns() -> None:
    assert tidy.to_csv([]).strip().split(",") == tidy.COLUMNS


def test_no_text_is_a_formula_in_a_spreadsheet() -> None:
    reasons = ["=HYPERLINK(1)", "+1", "-2+3", "@x", "-", "a=b"]
    rows = written(recording(*(failed(f"a{n}", "crash", reason) for n, reason in enumerate(reasons))))
    assert [row["reason"] for row in rows] == ["'=HYPERLINK(1)", "'+1", "'-2+3", "'@x", "-", "a=b"]


def test_json_has_the_columns_that_a_row_fills() -> None:
    table = tidy.rows([recording(timed("norse/box", train=3.0), failed("norse", "crash", "died"))])
    assert json.loads(tidy.to_json(table)) == [
        {name: value for name, value in row.items() if value is not None} for row in table
    ]
    with pytest.raises(ValueError):
        tidy.to_json([{"value": float("nan")}])


def test_schema_requires_what_identifies_a_row() -> None:
    assert set(tidy.json_schema()["items"]["required"]) == {
        *("recording", "cell", "library", "variant", "workload", "measure", "trial", "status", "flags")
    }
