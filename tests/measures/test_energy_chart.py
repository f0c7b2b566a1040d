"""Tests of the chart of energy, and of the sections and columns that appear with it."""

from dataclasses import replace
from typing import Any

from snnbench.measures.energy import report
from snnbench.recording.record import Record
from snnbench.report.page.outline import outline
from tests.recordings import deviating, recording, reported, timed
from tests.report.test_charts import chart_overview, values


def test_energy_has_bars_of_the_contenders_that_were_measured() -> None:
    """10 passes in 2 s took 50 J, of which 2 s at 5 W were idle: 4 J a pass. The other took 4 times the rest."""
    about = {"counter": "nvml", "passes": 10, "wall_ns": 2 * 10**9, "idle_ns": 10**9, "idle_uj": 5 * 10**6}
    records = [
        _with_energy(timed("low", train=10.0), about | {"counted_uj": 50 * 10**6}),
        _with_energy(timed("high", train=1.0), about | {"counted_uj": 170 * 10**6}),
        _with_energy(deviating("other", train=1.0), about | {"counted_uj": 20 * 10**6}),
        timed("unmeasured", train=1.0),
    ]
    (chart,) = report.section(chart_overview(*records)).charts
    assert [row[0] for row in chart.table.rows] == ["low", "high"]
    assert [row[2:4] for row in chart.table.rows] == [["4", "5"], ["16", "5"]]
    assert {row["library"]: row["joules"] for row in values(chart)} == {"low": 4.0, "high": 16.0}
    assert "low takes the least, 4 J." in chart.words


def test_page_has_energy_only_where_it_was_measured() -> None:
    about = {"counter": "rapl", "passes": 1, "wall_ns": 10**9, "idle_ns": 10**9, "idle_uj": 1, "counted_uj": 10**6}
    measured = recording(_with_energy(timed("low", train=10.0), about))
    assert "energy" in [section.name for section in outline(measured)]
    assert "energy" not in [section.name for section in outline(recording(timed("low", train=10.0)))]


def _with_energy(record: Record, energy: dict[str, Any]) -> Record:
    return replace(record, phases={name: timing | {"energy": energy} for name, timing in record.phases.items()})


def test_table_has_joules_only_where_they_were_measured() -> None:
    about = {"counter": "rapl", "passes": 1, "wall_ns": 10**9, "idle_ns": 10**9, "idle_uj": 0, "counted_uj": 2 * 10**6}
    idle = about | {"idle_uj": 3 * 10**6}
    measured = recording(
        _with_energy(timed("low", train=10.0), about),
        timed("other", train=11.0),
        _with_energy(timed("noisy", train=12.0), idle),
    )
    lines = reported(measured).splitlines()
    (header,) = [line for line in lines if line.startswith("| library |")]
    column = header.split(" | ").index("train J")
    rows = [line.split(" | ") for line in lines if line.startswith(("| low", "| o", "| n"))]
    assert [row[column] for row in rows] == ["2", "-", "noise"]
    assert "train J" not in reported(recording(timed("low", train=10.0)))
