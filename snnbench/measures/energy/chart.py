"""The chart of energy: a bar for each contender, the joules of a pass beyond the machine's idle power."""

from typing import Any

import altair as alt

from snnbench.cases.case import Case
from snnbench.report.charts import style
from snnbench.report.overview import Overview
from snnbench.report.section import Chart, Table
from snnbench.units import number, quantity

METRIC = "energy"


def bars(overview: Overview, case: Case, phase: str, name: str) -> Chart:
    """A bar for each contender whose energy was measured and whose work is the case's, the lowest on top."""
    points = sorted(
        (point for point in overview.points(case, phase, METRIC) if point.ranked), key=lambda point: point.value
    )
    idle = {point.contender: point.value for point in overview.points(case, phase, "idle_power")}
    rows: list[dict[str, Any]] = [
        {"library": each.contender, "joules": each.value, "shown": quantity(each.value, "joules")} for each in points
    ]
    title = f"{overview.label(case)}"
    least = f" {points[0].contender} takes the least, {quantity(points[0].value, 'joules')}." if points else ""
    return Chart(
        name=name,
        title=title,
        words=f"Energy of a pass of {phase} beyond idle power, a row a contender: {title}.{least}",
        specification=style.specification(_draw(rows, phase), style.ROW * len(rows)),
        table=Table(
            ["library", "verdict", f"{phase} J", "idle W", "trials"],
            [
                [
                    point.contender,
                    point.verdict,
                    number(point.value),
                    number(idle[point.contender]),
                    str(point.trials),
                ]
                for point in points
            ],
            texts=2,
        ),
    )


def _draw(rows: list[dict[str, Any]], phase: str) -> Any:
    y = style.rows_axis([row["library"] for row in rows])
    x = alt.X("joules:Q", axis=alt.Axis(title=f"{phase}, J", tickCount=5, format="~s"))
    tips = style.tooltip(library="library:N", joules="shown:N")
    drawn = alt.Chart(style.data(rows)).mark_bar(size=style.ROW - 8).encode(x, y, tooltip=tips)
    text = alt.Chart(style.data(rows)).mark_text(align="left", dx=4).encode(x, y, text="shown:N")
    return drawn + text
