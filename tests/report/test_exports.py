"""Tests of the exports: each has every time and peak of work that is the same, in its own units, and nothing else."""

import json

import pytest

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
