"""The chart of time against a size, both logarithmic: a line per contender, intervals, the floor, and missing times.

Against the number of devices, dashed lines are the models of a pipeline's time.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt

from snnbench.analysis.pipelines import pipelines
from snnbench.cases.case import Case
from snnbench.report import wording
from snnbench.report.charts import style
from snnbench.report.charts.dots import row_of
from snnbench.report.numbers import counted, listed, spread
from snnbench.report.overview import Overview, Point, about_intervals
from snnbench.report.section import Chart, Table
from snnbench.report.text.pipeline_table import LOWER_BOUNDS, MODELS, times_ms
from snnbench.units import MS, number

DASHES = ([8, 4], [4, 3])
"""The dashes of the models, in the colour of the axes' titles."""
SYMBOL = 500
"""The square of the length of a line in the legend, in px."""


def rows(overview: Overview, cases: Sequence[Case], axis: str, phase: str) -> list[dict[str, Any]]:
    """A row for each model of each pipeline in cases that differ in their number of processes; else none."""
    if len({case.processes for case in cases}) == 1:
        return []
    modelled = pipelines(overview.results, cases, phase)
    several = len({one.contender for one in modelled}) > 1
    return [
        {
            "model": f"{name} of {one.contender}" if several else name,
            "contender": one.contender,
            "size": wording.size(one.case, axis),
            "ms": ms,
        }
        for one in modelled
        for name, ms in zip(MODELS, times_ms(one.predicted), strict=True)
    ]


def lines(rows_: Sequence[dict[str, Any]], x: alt.X, y: alt.Y) -> Any:
    """A line for each model, with a legend of its own above the chart: beside the contenders' it has no room."""
    names = list(dict.fromkeys(row["model"] for row in rows_))
    dashes = [DASHES[number % len(DASHES)] for number in range(len(names))]
    columns = 1 if len(names) > len(MODELS) else 2  # names with a contender are long
    legend = alt.Legend(title=None, orient="top", columns=columns, symbolType="stroke", symbolSize=SYMBOL)
    dash = alt.StrokeDash("model:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    return alt.Chart(style.data(rows_)).mark_line(strokeWidth=1.5).encode(x, y, dash)


def words(rows_: Sequence[dict[str, Any]]) -> str:
    """The names of these lines in a sentence, to follow another; empty without any."""
    return f" Dashed: {listed(list(dict.fromkeys(row['model'] for row in rows_)))}." if rows_ else ""


def note(rows_: Sequence[dict[str, Any]]) -> str:
    """What these lines are; empty without any."""
    if not rows_:
        return ""
    contenders = listed(list(dict.fromkeys(row["contender"] for row in rows_)))
    return f"The dashed lines without marks are models of {contenders}. {LOWER_BOUNDS}"


STRIP = 16
"""px above the scale for each contender without a time at some size."""
NAME = 160
"""The most px of a label there; half of a phone's chart."""
STRIPS = 8
"""The most such contenders; the others are listed below the chart."""


def against(overview: Overview, cases: Sequence[Case], axis: str, phase: str, name: str) -> Chart:
    """Times of a phase in cases that differ along one axis."""
    points = [point for case in cases for point in overview.points(case, phase)]
    names = list(dict.fromkeys(point.contender for point in points))
    every = _failed(overview, cases, axis, phase)
    failed = {one: kinds for one, kinds in every.items() if one in names}
    without = [
        f"{one} ({listed(list(dict.fromkeys(kinds.values())))})" for one, kinds in every.items() if one not in names
    ]
    title = f"{overview.name(cases[0])}: {wording.sizes(cases[0], axis)}".rstrip(": ")
    modelled = rows(overview, cases, axis, phase)
    chart, height = _draw(overview, cases, axis, phase, failed, modelled)
    return Chart(
        name=name,
        title=title,
        words=_words(cases, axis, phase, points, names, title) + words(modelled),
        specification=style.specification(chart, height),
        table=_table(overview, cases, axis, phase, modelled),
        note=" ".join(part for part in (_note(points, list(failed)[STRIPS:], without), note(modelled)) if part),
    )


def _draw(
    overview: Overview,
    cases: Sequence[Case],
    axis: str,
    phase: str,
    failed: dict[str, dict[int, str]],
    modelled: Sequence[dict[str, Any]],
) -> tuple[Any, int]:
    """The chart and its height in px."""
    points = [point for case in cases for point in overview.points(case, phase)]
    strip = STRIP * min(len(failed), STRIPS) + (6 if failed else 0)
    floors = [(wording.size(case, axis), overview.floor_ns(case, phase)) for case in cases]
    floor_rows = [{"size": size, "ms": ns / MS} for size, ns in floors if ns]
    rows = [_row(point, axis) for point in points]
    values = [row[key] for row in rows for key in ("ms", "low", "high") if row[key]]
    values += [row["ms"] for row in (*floor_rows, *modelled)]
    sizes = [wording.size(case, axis) for case in cases]
    x = alt.X(
        "size:Q",
        scale=style.logarithmic(sizes, 2),
        axis=alt.Axis(title=wording.axis_name(cases[0], axis), values=sizes, format="d", grid=False, labelOverlap=True),
    )
    scale = style.logarithmic(values)
    scale["range"] = [style.PANEL + strip, strip]
    y = alt.Y("ms:Q", scale=scale, axis=alt.Axis(title=f"{phase}, ms", format="~g", tickCount=6))
    shown = sorted({point.contender for point in points})
    color, shape, dash = (make(overview.contenders, shown) for make in (style.color, style.shape, style.dash))
    dash = dash.legend(None) if modelled else dash  # the models have a legend of dashes
    tips = style.tooltip(
        library="library:N", cell="sizes:N", ms="shown:N", verdict="verdict:N", trials="trials:Q", flags="flags:N"
    )
    layers: list[Any] = [_floor(floor_rows, x, y)] if floor_rows else []
    if bounded := [row for row in rows if row["low"] is not None]:
        interval = alt.Chart(style.data(bounded)).mark_rule(strokeWidth=1.5)
        layers.append(interval.encode(x, alt.Y("low:Q", scale=scale), alt.Y2("high:Q"), color))
    layers.append(alt.Chart(style.data(rows)).mark_line(strokeWidth=1.5).encode(x, y, color, dash))
    for filled in (True, False):
        if some := [row for row in rows if row["ranked"] is filled]:
            mark = alt.Chart(style.data(some)).mark_point(filled=filled, size=55, opacity=1)
            layers.append(mark.encode(x, y, color, shape, tooltip=tips))
    chart = style.layered(*layers)
    if modelled:
        chart = style.layered(lines(modelled, x, y), chart, independent="strokeDash")
    if failed:
        chart = style.layered(chart, _strip(failed, x, sizes), independent="y")
    return chart, style.PANEL + strip


def _row(point: Point, axis: str) -> dict[str, Any]:
    return row_of(point) | {"size": wording.size(point.case, axis)}


def _floor(rows: list[dict[str, Any]], x: alt.X, y: alt.Y) -> Any:
    line = alt.Chart(style.data(rows)).mark_line(strokeDash=[1, 3], strokeWidth=2).encode(x, y)
    middle = rows[(len(rows) - 1) // 2]  # to the right of it the line runs away from its name
    falls = rows[-1]["ms"] < rows[0]["ms"]
    label = alt.Chart(style.data([middle])).mark_text(align="left", dx=8, dy=-9 if falls else 9, text="floor")
    return style.layered(line, label.encode(x, y))


def _strip(failed: dict[str, dict[int, str]], x: alt.X, sizes: Sequence[int]) -> Any:
    """The strip above the scale: a row per contender with a mark at each size without a time, and its name."""
    marks, labels = [], []
    for row, (name, kinds) in enumerate(list(failed.items())[:STRIPS]):
        marks += [{"size": size, "row": row} for size in kinds]
        position, before = _beside([size in kinds for size in sizes])
        text = f"{name}: {listed(list(dict.fromkeys(kinds.values())))}"
        labels.append({"size": sizes[position], "row": row, "text": text, "before": before})
    rows = min(len(failed), STRIPS)
    scale = alt.Scale(domain=[0, rows], range=[STRIP / 2, STRIP / 2 + STRIP * rows], nice=False)
    y = alt.Y("row:Q", scale=scale, axis=None)
    layers = [alt.Chart(style.data(marks)).mark_text(text="\u2715", fontSize=12).encode(x, y)]
    for before in (True, False):
        if some := [label for label in labels if label["before"] is before]:
            mark = alt.Chart(style.data(some)).mark_text(
                align="right" if before else "left", dx=-9 if before else 9, limit=NAME
            )
            layers.append(mark.encode(x, y, text="text:N"))
    return style.layered(*layers)


def _beside(missing: Sequence[bool]) -> tuple[int, bool]:
    """The mark beside a row's name, and whether the name comes before it: on the side with more room."""
    first = missing.index(True)
    end = missing.index(False, first) if False in missing[first:] else len(missing)
    room_after = (missing.index(True, end) if True in missing[end:] else len(missing)) - end
    return (first, True) if first >= room_after else (end - 1, False)


def _failed(overview: Overview, cases: Sequence[Case], axis: str, phase: str) -> dict[str, dict[int, str]]:
    """By contender: the sizes at which it failed and has no time, and the kind of failure."""
    kinds: dict[str, dict[int, str]] = {}
    for case in cases:
        for result in overview.results[case]:
            records = overview.failures.get((case, result.contender))
            if records and (phase, "time") not in result.summaries:
                kind = str(records[0].outcome.kind)
                kinds.setdefault(result.contender, {})[wording.size(case, axis)] = kind
    return dict(sorted(kinds.items(), key=lambda item: (min(item[1]), item[0])))


def _table(
    overview: Overview, cases: Sequence[Case], axis: str, phase: str, modelled: Sequence[dict[str, Any]]
) -> Table:
    """A row per contender and per model, a column per size."""
    cells: dict[str, dict[int, str]] = {}
    for case in cases:
        for point in overview.points(case, phase):
            times = cells.setdefault(point.contender, {})
            times[wording.size(case, axis)] = spread(point.value, point.low, point.high, MS)
    for name, kinds in _failed(overview, cases, axis, phase).items():
        cells.setdefault(name, {}).update(kinds)
    for row in modelled:
        cells.setdefault(row["model"], {})[row["size"]] = number(row["ms"])
    sizes = [wording.size(case, axis) for case in cases]
    rows = [[name, *(times.get(size, "-") for size in sizes)] for name, times in cells.items()]
    floors = [overview.floor_ns(case, phase) for case in cases]
    if any(floors):
        rows.append(["floor", *("-" if ns is None else number(ns / MS) for ns in floors)])
    shown = about_intervals(point for case in cases for point in overview.points(case, phase))
    caption = f"{phase} in ms: median of trial medians{shown}"
    return Table(["library", *(f"{cases[0].SIZES[axis][0]}={size}" for size in sizes)], rows, caption=caption)


def _words(
    cases: Sequence[Case], axis: str, phase: str, points: Sequence[Point], names: Sequence[str], title: str
) -> str:
    sizes = [wording.size(case, axis) for case in cases]
    largest = [point for point in points if point.case == cases[-1] and point.ranked]
    best = min(largest, key=lambda point: point.value, default=None)
    about = f"Time of {phase} against {wording.axis_name(cases[0], axis)}, both logarithmic: {title}. "
    about += f"{counted(len(names), 'line')}, {cases[0].SIZES[axis][0]} from {min(sizes)} to {max(sizes)}."
    if best is None:
        return about
    lowest = f"{best.contender} has the lowest median, {number(best.value / MS)} ms"  # the headline says who leads
    return f"{about} At {cases[0].SIZES[axis][0]}={sizes[-1]} {lowest}."


def _note(points: Sequence[Point], unseen: Sequence[str], without: Sequence[str]) -> str:
    notes = []
    if any(not point.ranked for point in points):
        notes.append("Hollow marks deviate: they are other work, and are not ranked.")
    if unseen:
        notes.append(f"Not marked, but without a time at some size: {listed(unseen)}.")
    if without:
        notes.append(f"Without a time at any size: {listed(without)}.")
    return " ".join(notes)
