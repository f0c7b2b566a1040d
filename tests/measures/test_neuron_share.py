"""Tests of the chart and the column of the neuron's share, and of the rule about it."""

from dataclasses import replace

import pytest

from snnbench.analysis.metrics import metrics
from snnbench.analysis.results import results_by_case
from snnbench.measures.neuron_share import report
from snnbench.measures.neuron_share.harness import complaints
from snnbench.recording.record import Record
from snnbench.report.page.outline import outline
from tests.recordings import deviating, recording, reported, timed
from tests.report.test_charts import chart_overview, values

MS = 1_000_000


def shared(record: Record, linear_ms: list[int], whole_ms: list[int]) -> Record:
    """The record, with passes without neurons of these times beside whole ones."""
    pairs = {
        "passes": 1,
        "repetitions_ns": [each * MS for each in linear_ms],
        "whole_passes": 2,
        "whole_ns": [2 * each * MS for each in whole_ms],
    }
    return replace(record, phases={name: timing | {"without_neurons": pairs} for name, timing in record.phases.items()})


def test_share_and_its_spread_are_metrics_of_the_pairs() -> None:
    record = shared(timed("one", train=10.0), [2, 4, 6], [10, 10, 10])
    numbers = {metric: value for phase, metric, _, value in metrics(record) if phase == "train"}
    assert numbers["neuron_share"] == pytest.approx(0.6) and numbers["neuron_time"] == 6 * MS
    assert numbers["neuron_share_spread"] == pytest.approx(0.2)


def test_share_has_bars_of_linear_layers_and_neurons() -> None:
    records = [
        shared(timed("slow", train=10.0), [2, 2, 2], [10, 10, 10]),
        shared(timed("fused", train=4.0), [5, 5, 5], [4, 4, 4]),
        shared(deviating("other", train=1.0), [1, 1, 1], [1, 1, 1]),
        timed("unmeasured", train=1.0),
    ]
    (chart,) = report.section(chart_overview(*records)).charts
    assert [row[0] for row in chart.table.rows] == ["fused", "slow"]
    assert [row[3:6] for row in chart.table.rows] == [["5", "-25.0", "0.0"], ["2", "80.0", "0.0"]]
    lengths = {(row["library"], row["part"]): row["ms"] for row in values(chart)}
    assert lengths["slow", "neurons"] == 8 and lengths["slow", "linear layers"] == 2
    assert lengths["fused", "neurons"] == 0, "a bar has no length below 0"
    assert "The neurons take -25% to 80%" in chart.words


def test_page_and_table_have_the_share_where_it_was_measured() -> None:
    plain = recording(timed("one", train=10.0))
    assert "neuron-share" not in [section.name for section in outline(plain)]
    assert "neuron %" not in reported(plain)
    single = recording(shared(timed("one", train=10.0), [2, 4, 6], [10, 10, 10]), timed("other", train=11.0))
    assert "neuron-share" in [section.name for section in outline(single)]
    assert column(reported(single)) == ["60 ±10.0", "-"]
    trials = [shared(replace(timed("one", train=10.0), trial=trial), [2 + trial] * 3, [10] * 3) for trial in (0, 1, 2)]
    assert column(reported(recording(*trials))) == ["70 (65-75)"]


def column(text: str) -> list[str]:
    """The cells of the column of the share."""
    lines = [line for line in text.splitlines() if line.startswith(("| library", "| one", "| other"))]
    number = lines[0].split(" | ").index("neuron %")
    return [line.split(" | ")[number] for line in lines[1:]]


def test_check_wants_a_whole_pass_beside_each_without_neurons() -> None:
    assert list(complaints(shared(timed("one", train=10.0), [2, 2, 2], [10, 10, 10]), 8)) == []
    for linear_ms, whole_ms in (([2, 2], [10, 10]), ([2, 2, 2], [10, 10])):
        (complaint,) = complaints(shared(timed("one", train=10.0), linear_ms, whole_ms), 8)
        assert complaint.startswith(f"train: {len(linear_ms)} repetitions without neurons beside {len(whole_ms)}")


def sized(contender: str, neurons: int, linear_ms: int, whole_ms: int, profile: str = "subtract") -> Record:
    record = shared(timed(contender, train=float(whole_ms)), [linear_ms] * 3, [whole_ms] * 3)
    reset = {"subtract": "subtract", "zero": "zero"}[profile]
    case = record.case.with_(neurons=neurons, reset=reset, detach_reset=reset == "zero")
    return replace(record, case=case)


def test_table_by_size_is_ordered_by_the_largest_size() -> None:
    records = [
        *(sized("loop", neurons, linear, 10) for neurons, linear in ((64, 1), (512, 5))),
        *(sized("kernel", neurons, linear, 10) for neurons, linear in ((64, 4), (512, 9))),
        sized("small", 64, 2, 10),
        sized("alone", 64, 2, 10, "zero"),
    ]
    table = report.table(results_by_case(records), "train")
    assert list(table.columns) == ["library", "N=64 %", "N=64 x floor", "N=512 %", "N=512 x floor"]
    assert [[row[0], row[1], row[3]] for row in table.rows] == [
        ["loop", "90", "50"],
        ["kernel", "60", "10"],
        ["small", "80", "-"],
    ], "a single size of another profile has no row"
    assert table.leaving == ["N=64 x floor", "N=512 x floor"], "at 80 columns every share stays, and names are whole"
    assert report.TITLE in reported(recording(*records))


def test_table_by_size_names_the_work_if_there_are_several() -> None:
    records = [sized("a", neurons, 1, 10, profile) for neurons in (64, 512) for profile in ("subtract", "zero")]
    table = report.table(results_by_case(records), "train")
    assert table.columns[0] == "work" and [row[0] for row in table.rows] == ["reset by subtraction", "reset to zero"]
    assert not report.table(results_by_case(records[:1]), "train").rows
