"""The chart of times at one size: a row per contender with its interval, and the floor."""

from typing import Any

import altair as alt

from snnbench.cases.case import Case
from snnbench.report.charts import style
from snnbench.report.numbers import counted, spread
from snnbench.report.overview import Overview, Point
from snnbench.report.section import Chart, Table
from snnbench.units import MS, number


def at(overview: Overview, case: Case, phase: str, name: str) -> Chart:
    """Times of a phase in one case, the fastest on top; contenders without a time come last, with the reason."""
    points = sorted(overview.points(case, phase), key=lambda point: (not point.ranked, point.value))
    floor_ns = overview.floor_ns(case, phase)
    timed = {point.contender for point in points}
    failed = {
        contender: str(records[0].outcome.kind)
        for (other, contender), records in overview.failures.items()
        if other == case and contender not in timed
    }
    rows = [row_of(point) for point in points]
    title = f"{overview.label(case)}"
    order = [*(point.contender for point in points), *failed]
    table_rows = [[row["library"], row["verdict"], row["shown"], str(row["trials"])] for row in rows]
    table_rows += [[contender, kind, "-", "0"] for contender, kind in failed.items()]
    table_rows += [["floor", "", number(floor_ns / MS), ""]] if floor_ns else []
    ranked = [point for point in points if point.ranked]
    best = f" {ranked[0].contender} has the lowest median, {number(ranked[0].value / MS)} ms." if ranked else ""
    deviating = any(not point.ranked for point in points)
    return Chart(
        name=name,
        title=title,
        words=f"Time of {phase}: {title}. {counted(len(points), 'contender')}, a row each.{best}",
        specification=style.specification(_draw(rows, order, failed, floor_ns, phase), style.ROW * len(order) + 14),
        table=Table(["library", "verdict", f"{phase} ms", "trials"], table_rows, texts=2),
        note="Hollow marks deviate: they are other work, and are not ranked." if deviating else "",
    )


def row_of(point: Point) -> dict[str, Any]:
    """A point's row of a chart's data, with times in ms."""
    return {
        "library": point.contender,
        "ms": point.value / MS,
        "low": None if point.low is None else point.low / MS,
        "high": None if point.high is None else point.high / MS,
        "shown": spread(point.value, point.low, point.high, MS),
        "verdict": point.verdict,
        "trials": point.trials,
        "sizes": point.case.sizes(),
        "flags": point.flags,
        "ranked": point.ranked,
    }


def _draw(
    rows: list[dict[str, Any]], order: list[str], failed: dict[str, str], floor_ns: float | None, phase: str
) -> Any:
    values = [row[key] for row in rows for key in ("ms", "low", "high") if row[key]]
    values += [floor_ns / MS] if floor_ns else []
    scale = style.logarithmic(values)
    room = max(1.6, (max(values) / min(values)) ** 0.3)  # for the number, which stands to the right of its mark
    scale["domain"] = [min(values) / 1.25, max(values) * room]
    y = style.rows_axis(order)
    x = alt.X("ms:Q", scale=scale, axis=alt.Axis(title=f"{phase}, ms", format="~g", tickCount=5))
    layers: list[Any] = []
    if floor_ns:
        layers.append(_floor(floor_ns / MS, scale))
    if bounded := [row for row in rows if row["low"] is not None]:
        interval = alt.Chart(style.data(bounded)).mark_rule(strokeWidth=2)
        layers.append(interval.encode(alt.X("low:Q", scale=scale), alt.X2("high:Q"), y))
    tips = style.tooltip(
        library="library:N", cell="sizes:N", ms="shown:N", verdict="verdict:N", trials="trials:Q", flags="flags:N"
    )
    for filled in (True, False):
        if some := [row for row in rows if row["ranked"] is filled]:
            mark = alt.Chart(style.data(some)).mark_point(filled=filled, size=70, opacity=1)
            layers.append(mark.encode(x, y, tooltip=tips))
    numbers = [row | {"text": number(row["ms"]), "end": row["high"] or row["ms"]} for row in rows]
    text = alt.Chart(style.data(numbers)).mark_text(align="left", dx=8)
    layers.append(text.encode(alt.X("end:Q", scale=scale), y, text="text:N"))
    if failed:
        labels = [{"library": name, "text": f"\u2715 {kind}"} for name, kind in failed.items()]
        layers.append(alt.Chart(style.data(labels)).mark_text(align="left", x=4).encode(y, text="text:N"))
    return style.layered(*layers)


def _floor(floor_ms: float, scale: alt.Scale) -> Any:
    there = style.data([{"ms": floor_ms, "text": "floor"}])
    x = alt.X("ms:Q", scale=scale)
    line = alt.Chart(there).mark_rule(strokeDash=[1, 3], strokeWidth=2).encode(x)
    return style.layered(line, alt.Chart(there).mark_text(align="left", dx=4, y=-6).encode(x, text="text:N"))
