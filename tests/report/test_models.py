"""Tests of the models of pipelines in reports: dashed lines in a chart, and a table in Markdown and on a terminal."""

import json
import re
from typing import Any
from xml.etree import ElementTree

import altair
import vl_convert
from rich.console import Console

from snnbench.recording.record import Record
from snnbench.report.charts import style
from snnbench.report.overview import find
from snnbench.report.page import figures, sections
from snnbench.report.section import Chart
from snnbench.report.terminal import drawing
from snnbench.report.text import recording_tables
from snnbench.report.text.pipeline_table import MODELS, TITLE
from tests.fakes import DIVIDED, LIF
from tests.recordings import recording, reported, timed

CASES = {k: DIVIDED.with_(devices=k) for k in (1, 2, 4)}
TIMES = {"temporal": (12.0, 8.0, 7.0), "batch": (12.0, 6.5, 4.0), "neurons": (12.0, 6.0, 3.5)}
ROWS = ["| 2 devices | ours/temporal | 8 | 6 | 7.5 |", "| 4 devices | ours/temporal | 7 | 3 | 3.75 |"]


def divided(library: str = "ours", **fields: Any) -> list[Record]:
    """Each split on 1, 2 and 4 devices."""
    return [
        timed(f"{library}/{split}", case=case, train=ms, settings={"split": split}, **fields)
        for split, times in TIMES.items()
        for case, ms in zip(CASES.values(), times, strict=True)
    ]


def charts(*records: Record) -> list[Chart]:
    return list(sections.times(find(recording(*records))).charts)


def drawn(chart: Chart, field: str) -> dict[str, list[tuple[int, float]]]:
    """(size, ms) of each line by this field, without repeats of a layer."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for rows in chart.specification["datasets"].values():
        for row in rows:
            point = row["size"], row["ms"]
            if field in row and point not in lines.setdefault(row[field], []):
                lines[row[field]].append(point)
    return lines


def test_three_splits_and_two_models_are_five_lines() -> None:
    (chart,) = charts(*divided())
    assert drawn(chart, "library") == {
        f"ours/{split}": list(zip(CASES, times, strict=True)) for split, times in TIMES.items()
    }
    assert drawn(chart, "model") == {
        "paper's model": [(1, 12.0), (2, 6.0), (4, 3.0)],
        "with the fill": [(1, 12.0), (2, 7.5), (4, 3.75)],
    }
    assert [list(row) for row in chart.table.rows][-2:] == [
        ["paper's model", "12", "6", "3"],
        ["with the fill", "12", "7.5", "3.75"],
    ]
    assert chart.note.startswith("The dashed lines without marks are models of ours/temporal. ")
    assert "time of messages" in chart.note and chart.note.endswith("lower bounds.")
    assert chart.words.endswith("3.5 ms. Dashed: paper's model and with the fill.")


def test_chart_with_models_is_valid_and_names_no_colour() -> None:
    (chart,) = charts(*divided(floors_ms={"train": 2.0}))
    altair.LayerChart.from_dict(chart.specification, validate=True)
    assert "#" not in json.dumps(chart.specification)


def test_each_line_has_one_name_in_the_legends() -> None:
    (chart,) = charts(*divided())
    configuration = style.configuration(style.variables("light"), figures.FONT)
    svg = vl_convert.vegalite_to_svg(chart.specification | {"width": 420, "config": configuration})
    texts = [element.text for element in ElementTree.fromstring(svg).iter()]
    names = [*(f"ours/{split}" for split in TIMES), *MODELS]
    assert [texts.count(name) for name in names] == [1] * 5


def test_models_of_two_contenders_name_them() -> None:
    (chart,) = charts(*divided(), *divided("other"))
    assert list(drawn(chart, "model")) == [
        f"{model} of {library}/temporal" for library in ("other", "ours") for model in MODELS
    ]


def test_other_recordings_have_no_model() -> None:
    plain = [record for record in divided() if record.variant != "temporal"]
    other = [timed("a", case=LIF.with_(time_steps=steps), train=1.0) for steps in (1, 4)]
    steps = [
        timed("a", case=DIVIDED.with_(time_steps=steps), train=1.0, settings={"split": "temporal"})
        for steps in (20, 40)
    ]
    for records in (plain, other, steps):
        for chart in charts(*records):
            assert not chart.note and "Dashed" not in chart.words and "model" not in json.dumps(chart.specification)
        assert TITLE not in reported(recording(*records))


def test_table_has_measured_and_predicted_times() -> None:
    text = reported(recording(*divided()))
    _, _, table = text.partition(f"### {TITLE}\n")
    assert [line for line in table.splitlines() if line.endswith((" 7.5 |", " 3.75 |"))] == ROWS
    assert "| case | library | train ms | paper's model, ms | with the fill, ms |" in table
    assert table.endswith("lower bounds.\n")


def test_terminal_shows_the_same_table() -> None:
    console = Console(width=120, record=True, force_terminal=False)
    drawing.show(console, recording_tables.report(recording(*divided())))
    _, _, shown = console.export_text().partition(TITLE)
    rows = [re.split(r"  +", line.strip()) for line in shown.splitlines() if line.strip().endswith((" 7.5", " 3.75"))]
    assert rows == [["2 devices", "ours/temporal", "8", "6", "7.5"], ["4 devices", "ours/temporal", "7", "3", "3.75"]]
    assert "lower bounds" in shown
