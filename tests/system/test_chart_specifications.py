"""Tests of the specifications of all charts: they are valid, name no colour, and give a contender one look."""

import json
from typing import Any

import altair

from snnbench.report.charts import style
from snnbench.report.overview import find
from snnbench.report.page import scaling
from snnbench.report.section import Chart, Section
from tests.report.test_charts import MAKERS
from tests.sample import sample


def every_chart() -> list[Chart]:
    overview = find(sample(neurons=(64, 128, 256), steps=(25, 50, 100)))
    sections: list[Section] = [*(make(overview) for make in MAKERS), scaling.section(overview)]
    return [chart for section in sections for chart in section.charts]


def test_chart_is_valid_and_has_words_numbers_and_a_name() -> None:
    charts = every_chart()
    assert len({chart.name for chart in charts}) == len(charts) > 15
    for chart in charts:
        altair.LayerChart.from_dict(chart.specification, validate=True)
        assert chart.words.endswith(".") and chart.title.split(":")[0] in chart.words
        assert chart.table.rows and all(len(row) == len(chart.table.columns) for row in chart.table.rows)


def test_a_specification_names_no_colour() -> None:
    """Page, print and paper have their own colours."""
    text = json.dumps([chart.specification for chart in every_chart()])
    assert "#" not in text and "rgb" not in text


def test_contenders_differ_in_colour_shape_and_dash_together() -> None:
    looks = {(n % len(style.LIGHT), n % len(style.SHAPES), n % len(style.DASHES)) for n in range(210)}
    assert len(looks) == 210
    assert len(style.LIGHT) == len(style.DARK) == len(set(style.LIGHT)) == len(set(style.DARK))


def test_a_contender_has_one_colour_in_every_chart() -> None:
    domains = {
        tuple(layer["encoding"]["color"]["scale"]["domain"])
        for chart in every_chart()
        for layer in _layers(chart.specification)
        if layer.get("encoding", {}).get("color", {}).get("field") == "library"
    }
    assert len(domains) == 1


def _layers(view: dict[str, Any]) -> list[dict[str, Any]]:
    inner = [deep for layer in view.get("layer", []) for deep in _layers(layer)]
    return inner or [view]
