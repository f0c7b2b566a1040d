"""Tests of the exports: each has every time and peak of work that is the same, in its own units, and nothing else."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from snnbench.recording import reading
from snnbench.report import exports
from snnbench.units import MIB
from tests.recordings import deviating, failed, recording, skipped, trials, weighed

MADE = recording(
    *trials("norse/box", [2.0, 4.0, 3.0], started="2026-11-25T10:00:00+00:00"),
    weighed("norse/box", host_mib=8),
    deviating("sinabs", train=1.0),
    failed("spyx", "incorrect", "3 spikes differ"),
    skipped("rockpool", "unsupported", "no reset"),
)


BOUND = {"type": "number"}
METRIC = {
    "type": "object",
    "properties": {"value": BOUND, "lower_value": BOUND, "upper_value": BOUND},
    "required": ["value"],
    "additionalProperties": False,
}
BMF = {
    "type": "object",
    "minProperties": 1,
    "propertyNames": {"maxLength": 1024},
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {"maxLength": 64, "pattern": "^[a-z0-9-]+$"},
        "additionalProperties": METRIC,
    },
}
"""Bencher Metric Format: the published schema, and the longest names of its reference page."""
TEXT = {"type": "string"}
ENTRY = {
    "type": "object",
    "properties": {"name": TEXT, "value": BOUND, "unit": {"enum": ["ms", "bytes"]}, "range": TEXT, "extra": TEXT},
    "required": ["name", "value", "unit"],
    "additionalProperties": False,
}
CUSTOM = {"type": "array", "minItems": 1, "items": ENTRY}
"""`customSmallerIsBetter` as github-action-benchmark 1.22 parses it, whose unit must not change between runs."""
RESULTS = sorted(path.parent for path in (Path(__file__).parents[2] / "results").glob("*_quick_*/records.jsonl"))


@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_committed_recordings_keep_the_schemas_of_services(folder: Path) -> None:
    measured = reading.read(folder)
    for schema, document in ((BMF, exports.bmf(measured)), (CUSTOM, exports.github_action_benchmark(measured))):
        Draft202012Validator(schema).validate(json.loads(document))


def test_only_the_same_work_has_numbers() -> None:
    names = [each.name for each in exports.measured(MADE)]
    assert len(names) == len(set(names)) == 2
    assert names[0].startswith("norse/box, train time, ") and names[1].startswith("norse/box, train host memory, ")


def test_bencher_gets_nanoseconds_and_bytes_with_quartiles() -> None:
    time, peak = json.loads(exports.bmf(MADE)).values()
    assert time == {"latency": {"value": 3e6, "lower_value": 2.5e6, "upper_value": 3.5e6}}
    assert peak == {"host-peak": {"value": 8.0 * MIB, "lower_value": 8.0 * MIB, "upper_value": 8.0 * MIB}}


def test_github_action_benchmark_gets_a_list_of_medians() -> None:
    time, peak = json.loads(exports.github_action_benchmark(MADE))
    assert (time["unit"], time["value"], time["range"]) == ("ms", 3.0, "2.5 to 3.5")
    assert time["extra"] == "exact, version 1.0, 3 trials"
    assert (peak["unit"], peak["value"]) == ("bytes", 8 * MIB)


def test_pyperf_gets_every_repetition_in_seconds() -> None:
    suite = json.loads(exports.pyperf(MADE))
    (benchmark,) = suite["benchmarks"]
    values = [run["values"] for run in benchmark["runs"]]
    assert values == [[0.002, 0.002, 0.009], [0.004, 0.004, 0.018], [0.003, 0.003, 0.0135]]
    assert benchmark["metadata"]["unit"] == "second"


def test_asv_gets_a_row_for_each_number_of_a_commit() -> None:
    document = json.loads(exports.asv(MADE, "0123abc"))
    assert document["commit_hash"] == "0123abc" and document["date"] == 1795600800000
    rows = [dict(zip(document["result_columns"], row, strict=True)) for row in document["results"].values()]
    assert [row["result"] for row in rows] == [[0.003], [8.0 * MIB]]
    assert (rows[0]["stats_q_25"], rows[0]["stats_q_75"], rows[0]["stats_repeat"]) == ([0.0025], [0.0035], [3])


@pytest.mark.parametrize("form", [*exports.FORMATS.values(), lambda made: exports.asv(made, "0")])
def test_recording_without_a_number_is_refused(form: object) -> None:
    assert callable(form)
    with pytest.raises(exports.NothingToExport, match="no time and no peak to export"):
        form(recording(failed("spyx", "crash", "no")))
