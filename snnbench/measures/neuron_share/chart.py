"""The chart of the neuron's share: a bar for each contender, its linear layers and the rest of the same pass."""

from typing import Any

import altair as alt

from snnbench.cases.case import Case
from snnbench.report.charts import style
from snnbench.report.overview import Overview
from snnbench.report.section import Chart, Table
from snnbench.units import MS, number

METRIC = "neuron_share"
PARTS = ("linear layers", "neurons")


def bars(overview: Overview, case: Case, phase: str, name: str) -> Chart:
    """A bar for each contender whose share was measured and whose work is the case's, the fastest on top."""
    points = [point for point in overview.points(case, phase, METRIC) if point.ranked]
    times, spreads, neurons = (
        {point.contender: point.value for point in overview.points(case, phase, metric)}
        for metric in ("time", f"{METRIC}_spread", "neuron_time")
    )
    floor_ns = overview.floor_ns(case, phase)
    points.sort(key=lambda point: times[point.contender])
    rows: list[dict[str, Any]] = []
    for point in points:
        neuron_ms = neurons[point.contender] / MS
        lengths = times[point.contender] / MS - neuron_ms, max(0.0, neuron_ms)
        rows += [
            {"library": point.contender, "part": part, "place": place, "ms": ms, "shown": f"{point.value:.0%}"}
            for place, (part, ms) in enumerate(zip(PARTS, lengths, strict=True))
        ]
    title = f"{overview.label(case)}"
    shares = [point.value for point in points]
    words = f"A pass of {phase} divided into linear layers and neurons, a row a contender: {title}."
    return Chart(
        name=name,
        title=title,
        words=words + (f" The neurons take {min(shares):.0%} to {max(shares):.0%}." if shares else ""),
        specification=style.specification(_draw(rows, phase), style.ROW * len(points)),
        table=Table(
            ["library", "verdict", f"{phase} ms", "without neurons ms", "neuron %", "spread %", "x floor", "trials"],
            [
                [
                    point.contender,
                    point.verdict,
                    number(times[point.contender] / MS),
                    number((times[point.contender] - neurons[point.contender]) / MS),
                    f"{100 * point.value:.1f}",
                    f"{100 * spreads[point.contender]:.1f}",
                    f"{times[point.contender] / floor_ns:.2f}" if floor_ns else "-",
                    str(point.trials),
                ]
                for point in points
            ],
            texts=2,
        ),
    )


def _draw(rows: list[dict[str, Any]], phase: str) -> Any:
    y = style.rows_axis(list(dict.fromkeys(row["library"] for row in rows)))
    colour = alt.Color("part:O", scale=alt.Scale(domain=["", *PARTS], range="ordinal"), legend=alt.Legend(title=None))
    colour["legend"]["values"] = list(PARTS)
    x = alt.X("ms:Q", stack="zero", axis=alt.Axis(title=f"{phase}, ms", tickCount=5, format="~f"))
    tips = style.tooltip(library="library:N", part="part:N", ms="ms:Q", share="shown:N")
    drawn = alt.Chart(style.data(rows)).mark_bar(size=style.ROW - 8)
    return drawn.encode(x, y, colour, order=alt.Order("place:Q"), tooltip=tips)
