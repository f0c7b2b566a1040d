"""The chart of first calls, which include compilation, and steady passes, with the break-even number of passes."""

from dataclasses import dataclass
from math import ceil
from typing import Any

import altair as alt

from snnbench.cases.case import Case
from snnbench.report.charts import style
from snnbench.report.overview import Overview
from snnbench.report.section import Chart, Table
from snnbench.units import MS, number


@dataclass(frozen=True, slots=True)
class Cost:
    """A contender's times in ns: of the first pass, and of every other."""

    first_ns: float
    pass_ns: float


def break_even(cost: Cost, base: Cost) -> int | None:
    """The number of passes from which on `cost` is at most `base` in total; None if that never happens.

    first + (k - 1) * pass <= base first + (k - 1) * base pass
    """
    dearer_ns, saved_ns = cost.first_ns - base.first_ns, base.pass_ns - cost.pass_ns
    if saved_ns < 0 or (saved_ns == 0 and dearer_ns > 0):
        return None
    return 1 if dearer_ns <= 0 else 1 + ceil(dearer_ns / saved_ns)


def dumbbells(overview: Overview, case: Case, phase: str, name: str) -> Chart:
    """A row per contender with its first call and its steady pass, the cheapest first call on top."""
    passes = {point.contender: point.value for point in overview.points(case, phase) if point.ranked}
    firsts = {point.contender: point.value for point in overview.points(case, phase, "first_call")}
    costs = {one: Cost(firsts[one], passes[one]) for one in sorted(passes, key=lambda one: firsts[one])}
    order = list(costs)
    base = overview.baseline if overview.baseline in costs else order[0]
    rows = [
        {"library": one, "kind": kind, "ms": value / MS}
        for one, cost in costs.items()
        for kind, value in (("first call", cost.first_ns), ("every other pass", cost.pass_ns))
    ]
    title = f"{overview.label(case)}"
    table = [
        [one, number(cost.first_ns / MS), number(cost.pass_ns / MS), _said(one, cost, base, costs[base])]
        for one, cost in costs.items()
    ]
    return Chart(
        name=name,
        title=title,
        words=f"First call and steady pass of {phase}, logarithmic, a row a contender: {title}. "
        f"{order[0]} has the cheapest first call.",
        specification=style.specification(_draw(rows, order, phase), style.ROW * len(order)),
        table=Table(["library", "first call ms", "pass ms", f"ahead of {base}"], table),
        note=_note(costs, base),
    )


def _note(costs: dict[str, Cost], base: str) -> str:
    """Break-even of the contenders whose first call is more expensive than the base's."""
    sentences = []
    for name, cost in costs.items():
        passes = break_even(cost, costs[base])
        if name != base and passes is not None and passes > 1:
            sentences.append(f"{name} after {passes} passes")
    return f"In total ahead of {base}: {', '.join(sentences)}." if sentences else ""


def _said(name: str, cost: Cost, base: str, against: Cost) -> str:
    if name == base:
        return "-"
    passes = break_even(cost, against)
    if passes is None:
        overtaken = break_even(against, cost)
        return "never" if overtaken in (None, 1) else f"until pass {overtaken - 1}"
    return "from the first" if passes == 1 else f"from pass {passes}"


def _draw(rows: list[dict[str, Any]], order: list[str], phase: str) -> Any:
    y = style.rows_axis(order)
    scale = style.logarithmic([row["ms"] for row in rows])
    x = alt.X("ms:Q", scale=scale, axis=alt.Axis(title=f"{phase}, ms", format="~g", tickCount=5))
    kinds = ["first call", "every other pass"]
    shape = alt.Shape(
        "kind:N", scale=alt.Scale(domain=kinds, range=["diamond", "circle"]), legend=alt.Legend(title=None)
    )
    joined = [
        {"library": one, **{key: row["ms"] for key, row in zip(("low", "high"), pair, strict=True)}}
        for one, pair in ((one, [row for row in rows if row["library"] == one]) for one in order)
    ]
    rule = (
        alt.Chart(style.data(joined))
        .mark_rule(strokeWidth=1.5)
        .encode(alt.X("low:Q", scale=scale), alt.X2("high:Q"), y)
    )
    points = alt.Chart(style.data(rows)).mark_point(filled=True, size=80, opacity=1)
    tips = style.tooltip(library="library:N", what="kind:N", ms="ms:Q")
    return style.layered(rule, points.encode(x, y, shape, tooltip=tips))
