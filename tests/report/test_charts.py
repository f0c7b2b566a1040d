"""Tests of the charts' content, computed by hand: break-even, the Pareto front, parts of memory, label places."""

from typing import Any

import pytest

from snnbench.report.charts.firstcall import Cost, break_even
from snnbench.report.charts.lines import _beside
from snnbench.report.charts.memory import parts
from snnbench.report.charts.pareto import front
from snnbench.report.overview import Overview, find
from snnbench.report.page import scaling, sections
from snnbench.report.section import Chart
from tests.fakes import CASE, LIF
from tests.recordings import MIB, deviating, failed, recording, timed, weighed

LARGE, LARGEST = CASE.with_(neurons=96), CASE.with_(neurons=192)
MAKERS = (
    sections.times,
    sections.memories,
    sections.fronts,
    sections.splits,
    sections.first_calls,
)
"""The makers of sections with a chart for each setting."""


def chart_overview(*records: Any, baseline: str = "") -> Overview:
    return find(recording(*records, baseline=baseline))


def values(chart: Chart) -> list[dict[str, Any]]:
    """All rows in a specification."""
    datasets = chart.specification.get("datasets", {}).values()
    return [row for rows in datasets for row in rows]


@pytest.mark.parametrize(
    ("cost", "base", "passes"),
    [
        (Cost(100, 1), Cost(10, 10), 11),  # 100 + 10 * 1 = 110 = 10 + 10 * 10
        (Cost(101, 1), Cost(10, 10), 12),
        (Cost(10, 1), Cost(10, 10), 1),
        (Cost(5, 10), Cost(10, 10), 1),
        (Cost(20, 10), Cost(10, 10), None),
        (Cost(5, 11), Cost(10, 10), None),
        (Cost(10, 10), Cost(10, 10), 1),
    ],
)
def test_break_even_is_the_first_pass_with_no_higher_total(cost: Cost, base: Cost, passes: int | None) -> None:
    def ahead_ns(count: int) -> float:
        return base.first_ns - cost.first_ns + (count - 1) * (base.pass_ns - cost.pass_ns)

    assert break_even(cost, base) == passes
    if passes is not None:
        assert ahead_ns(passes) >= 0
        assert passes == 1 or ahead_ns(passes - 1) < 0


def test_first_call_chart_names_the_leader_by_passes() -> None:
    records = [
        timed("base", train=10.0, first_call_ms=10),
        timed("compiled", train=1.0, first_call_ms=100),
        timed("slow", train=12.0, first_call_ms=20),
        timed("lazy", train=11.0, first_call_ms=5),
    ]
    (chart,) = sections.first_calls(chart_overview(*records, baseline="base")).charts
    assert {row[0]: row[3] for row in chart.table.rows} == {
        "base": "-",
        "compiled": "from pass 11",
        "slow": "never",
        "lazy": "until pass 5",  # 5 + 11 (k - 1) < 10 + 10 (k - 1) up to k = 5; at 6 both have taken 60
    }
    assert chart.note == "In total ahead of base: compiled after 11 passes."


def test_pareto_front() -> None:
    pairs = {"fast": (1.0, 9.0), "small": (9.0, 1.0), "middle": (3.0, 3.0), "beaten": (3.0, 4.0), "twin": (3.0, 3.0)}
    assert front(pairs) == ["fast", "middle", "twin", "small"]
    assert front({"one": (1.0, 1.0)}) == ["one"]
    assert front({}) == []


def test_parts_of_memory_add_up_to_all_that_was_in_use() -> None:
    """static 1, and a peak of 6 above it; 2 of the 6 are retained."""
    result = chart_overview(weighed("a")).results[CASE][0]
    assert parts(result, "train", "host") == {"static": MIB, "retained": 2 * MIB, "peak above these": 4 * MIB}
    assert parts(result, "train", "device") == {}


def test_memory_chart_names_contenders_out_of_memory() -> None:
    oom = failed("b", "oom-host", "killed", measure="memory")
    (chart,) = sections.memories(chart_overview(weighed("a"), oom)).charts
    assert [list(row) for row in chart.table.rows] == [["a", "1", "2", "4", "7"], ["b", "oom-host", "-", "-", "-"]]
    assert {"library": "b", "text": "\u2715 oom-host"} in values(chart)


def test_one_size_is_a_row_a_contender_and_several_are_lines() -> None:
    (chart,) = sections.times(chart_overview(timed("a", train=1.0))).charts
    assert chart.table.columns[0] == "library" and [row[0] for row in chart.table.rows] == ["a"]
    (lines,) = sections.times(chart_overview(timed("a", train=1.0), timed("a", case=LARGE, train=2.0))).charts
    assert list(lines.table.columns) == ["library", "N=48", "N=96"]
    assert [list(row) for row in lines.table.rows] == [["a", "1", "2"]]


def test_words_of_a_chart_name_the_lowest_median_and_no_fastest() -> None:
    """Only the headline names a leader. For single trials it says that they are too close to call."""
    several = [timed(name, case=case, train=ms) for name, ms in (("a", 2.0), ("b", 1.0)) for case in (CASE, LARGE)]
    for records in (several, several[::2]):
        (chart,) = sections.times(chart_overview(*records)).charts
        assert chart.words.endswith("b has the lowest median, 1 ms.")
        assert "fastest" not in chart.words


def test_two_values_are_rows_and_three_are_growth_lines() -> None:
    cases = [CASE.with_(batch=batch) for batch in (7, 14, 28)]
    two = chart_overview(*(timed("a", case=case, train=1.0) for case in cases[:2]))
    titles = [chart.title for chart in sections.times(two).charts]
    assert titles == [f"reset by subtraction, CPU: 48 neurons, batch {batch}, 20 steps" for batch in (7, 14)]
    assert not scaling.section(two).charts
    three = chart_overview(*(timed("a", case=case, train=1.0) for case in cases))
    assert not sections.times(three).charts and len(scaling.section(three).charts) == 1


def test_size_without_any_time_is_in_the_chart() -> None:
    cases = [CASE.with_(batch=batch) for batch in (7, 14, 28)]
    records = [
        timed("a", case=cases[0], train=1.0),
        *(failed("a", "oom-host", "full", case=case) for case in cases[1:]),
    ]
    (chart,) = scaling.section(chart_overview(*records)).charts
    assert [list(row) for row in chart.table.rows] == [["a", "1", "oom-host", "oom-host"]]
    assert not scaling.section(chart_overview(*records)).tables
    records = [timed("a", train=1.0), failed("a", "oom-host", "full", case=LARGE)]
    (chart,) = sections.times(chart_overview(*records)).charts
    assert [list(row) for row in chart.table.rows] == [["a", "1", "oom-host"]]


def test_lines_mark_failures_by_size_and_draw_the_floor() -> None:
    records = [
        timed("a", train=4.0, floors_ms={"train": 2.0}),
        timed("a", case=LARGE, train=8.0, floors_ms={"train": 3.0}),
        timed("b", train=5.0),
        failed("b", "oom-host", "killed", case=LARGE),
        *(failed("c", "incorrect", "wrong", case=case) for case in (CASE, LARGE)),
    ]
    (chart,) = sections.times(chart_overview(*records)).charts
    assert [list(row) for row in chart.table.rows] == [
        ["a", "4", "8"],
        ["b", "5", "oom-host"],
        ["c", "incorrect", "incorrect"],
        ["floor", "2", "3"],
    ]
    assert {"size": 96, "row": 0, "text": "b: oom-host", "before": True} in values(chart)
    assert chart.note == "Without a time at any size: c (incorrect)."
    assert not [row for row in values(chart) if row.get("library") == "c"]


def test_name_of_the_floor_is_above_a_falling_line() -> None:
    for floors_ms, dy in ((2.0, 3.0), 9), ((3.0, 2.0), -9):
        records = [
            timed("a", case=case, train=4.0, floors_ms={"train": ms})
            for case, ms in zip((CASE, LARGE), floors_ms, strict=True)
        ]
        (chart,) = sections.times(chart_overview(*records)).charts
        (_, label), *_ = (layer["layer"] for layer in chart.specification["layer"] if "layer" in layer)
        assert label["mark"]["text"] == "floor" and label["mark"]["dy"] == dy


def test_deviating_contender_is_a_hollow_dot_with_a_note() -> None:
    (chart,) = sections.times(chart_overview(timed("a", train=1.0), deviating("b", train=2.0))).charts
    assert [(row["library"], row["ranked"]) for row in values(chart) if "ranked" in row and "text" not in row] == [
        ("a", True),
        ("b", False),
    ]
    assert "Hollow" in chart.note


@pytest.mark.parametrize(
    ("missing", "index", "before"),
    [
        ([0, 0, 0, 1], 3, True),
        ([1, 0, 0, 0], 0, False),
        ([0, 1, 1, 0, 0, 0], 2, False),
        ([0, 0, 1, 0, 1], 2, True),
        ([1, 1, 0, 1], 1, False),
    ],
)
def test_a_name_goes_where_most_room_is(missing: list[int], index: int, before: bool) -> None:
    assert _beside([bool(one) for one in missing]) == (index, before)


def test_memory_is_the_device_s_in_a_setting_that_has_one_only() -> None:
    cuda = CASE.with_(device="cuda")
    charts = sections.memories(chart_overview(weighed("a"), weighed("a", cuda, device_mib=16))).charts
    assert [chart.title.rpartition(": ")[2] for chart in charts] == ["host memory of train", "device memory of train"]


def test_a_section_without_data_is_one_sentence() -> None:
    nothing = chart_overview(failed("a", "crash", "died"))
    for section in [*(make(nothing) for make in MAKERS), sections.ratios(nothing), scaling.section(nothing)]:
        assert not section.charts and not section.tables
        assert len(section.sentences) == 1 and section.sentences[0].startswith("Left out: ")


def test_ratios_are_to_the_baseline_without_deviating_contenders() -> None:
    records = [timed("a", train=2.0), timed("b", train=3.0), deviating("c", train=1.0)]
    records += [timed("a", case=LARGE, train=4.0), timed("b", case=LARGE, train=2.0)]
    (table,) = sections.ratios(chart_overview(*records, baseline="a")).tables
    assert list(table.columns) == ["library", "N=48", "N=96"]
    assert [list(row) for row in table.rows] == [["b", "1.50", "0.50"], ["a", "1.00", "1.00"], ["c", "-", "-"]]
    assert not sections.ratios(chart_overview(*records, baseline="c")).tables


def test_ratios_against_the_main_axis_are_a_chart() -> None:
    cases = [LIF.with_(time_steps=steps) for steps in (1, 4, 16)]
    records = [timed("ours", case=case, train=2.0) for case in cases]
    records += [timed("serial", case=case, train=3.0 * case.time_steps) for case in cases]
    records += [deviating("other", case=case, train=1.0) for case in cases]
    section = sections.ratios(chart_overview(*records, baseline="ours"))
    (chart,) = section.charts
    assert list(chart.table.columns) == ["library", "T=1", "T=4", "T=16"]
    assert [list(row) for row in chart.table.rows] == [["serial", "1.50", "6.00", "24.00"]]
    assert {row["ratio"] for row in values(chart) if row.get("library") == "serial"} == {1.5, 6.0, 24.0}
    assert chart.words.startswith(
        "Time of train over that of ours against time steps T, both logarithmic: lif, reset by subtraction"
    )
    assert not sections.ratios(chart_overview(*records[:2], *records[3:5], baseline="ours")).charts


def test_fit_needs_three_sizes_and_names_quadratic_growth() -> None:
    cases = [CASE.with_(time_steps=steps) for steps in (10, 20, 40)]
    records = [timed("a", case=case, train=1.0 * case.time_steps, backward=0.01 * case.time_steps**2) for case in cases]
    section = scaling.section(chart_overview(*records))
    (table,) = section.tables
    assert [list(row) for row in table.rows] == [["a", "1.00 (1.00 to 1.00); 1.00", "2.00 (2.00 to 2.00); 2.00"]]
    assert section.remarks == [
        "a: backward grows with the square of T (reset by subtraction, CPU: 48 neurons, batch 7)."
    ]
    assert len(section.charts) == 1
    assert not scaling.section(chart_overview(*records[:2])).tables
