"""Tests of the table of epochs, its sentences and its chart, on the recordings of loading and training."""

import pytest

from snnbench.analysis.epochs import epochs
from snnbench.recording.reading import read
from snnbench.report import overview
from snnbench.report.charts import epoch_parts
from snnbench.report.page import sections
from snnbench.report.text import epoch_table
from tests.pictures import LOADING, RECORDING, TRAINING

FOUND = overview.find(read(LOADING))
(TABLE,) = epoch_table.tables(FOUND.results)


def test_every_strategy_of_every_contender_has_a_row() -> None:
    assert len(TABLE.rows) == 4 * 7
    assert {row[1] for row in TABLE.rows} == {
        *("naive", "disk-cold", "disk-warm", "memory", "device-sparse"),
        *("naive + 1 worker", "disk-warm + 1 worker"),
    }
    assert "generated-ssc, subtract, B=50, T=100, W=128, L=3, S=2000 on cpu" in TABLE.caption


def test_longer_is_the_larger_of_loader_and_compute() -> None:
    columns = list(TABLE.columns)
    for row in TABLE.rows:
        loader, compute, longer = (float(row[columns.index(name)]) for name in ("loader s", "compute s", "longer s"))
        assert longer == max(loader, compute)


def test_naive_is_compared_to_itself() -> None:
    ratio = list(TABLE.columns).index("to naive")
    assert {row[ratio] for row in TABLE.rows if row[1].startswith("naive")} == {"1.00"}


def test_sentences_name_the_bound_and_the_losses() -> None:
    sentences = epoch_table.sentences(FOUND.results, FOUND.recording.records)
    assert "All strategies and trials of a contender have the same losses, bit by bit." in sentences
    (sinabs,) = (sentence for sentence in sentences if sentence.startswith("sinabs: "))
    assert "loading bounds disk-cold" in sinabs and "computing bounds" in sinabs


def test_different_losses_change_the_sentence() -> None:
    recording = read(LOADING)
    recording.records[0].phases["epoch"]["losses_digest"] = "other"
    sentences = epoch_table.sentences(FOUND.results, recording.records)
    assert sentences[-1].startswith("The strategies of a contender have different losses")


@pytest.mark.parametrize("recording", [LOADING, TRAINING], ids=lambda recording: recording.name)
def test_chart_has_the_parts_of_each_epoch(recording: object) -> None:
    of_recording = overview.find(read(recording))  # type: ignore[arg-type]
    section = sections.of_epochs(of_recording)
    groups = list(epochs(of_recording.results).values())
    assert [len(chart.table.rows) for chart in section.charts] == [len(group) for group in groups]
    for chart, group in zip(section.charts, groups, strict=True):
        assert set(chart.table.columns) - {"epoch", "epoch s"} <= {f"{part} s" for part in epoch_parts.PARTS}
        assert {epoch.contender for epoch in group} == {row[0].split(", ")[0] for row in chart.table.rows}


def test_recording_without_epochs_has_no_such_section() -> None:
    assert sections.of_epochs(overview.find(read(RECORDING))).sentences[0].startswith("Left out: no epoch was timed")
