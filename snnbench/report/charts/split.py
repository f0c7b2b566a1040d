"""The chart of forward and backward time, with the time of the training pass that does both."""

from typing import Any

import altair as alt

from snnbench.cases.case import Case
from snnbench.report.charts import style
from snnbench.report.overview import Overview
from snnbench.report.section import Chart, Table
from snnbench.units import MS, number

HALVES = ("forward", "backward")


def bars(overview: Overview, case: Case, name: str) -> Chart:
    """A bar for each contender with both times, the shortest on top, and a tick at its training pass."""
    times = {phase: {p.contender: p.value for p in overview.points(case, phase)} for phase in (*HALVES, "train")}
    both = [one for one in times["forward"] if one in times["backward"]]
    order = sorted(both, key=lambda one: times["forward"][one] + times["backward"][one])
    rows = [
        {"library": one, "phase": phase, "place": HALVES.index(phase), "ms": times[phase][one] / MS}
        for one in order
        for phase in HALVES
    ]
    whole = [{"library": one, "ms": times["train"][one] / MS} for one in order if one in times["train"]]
    title = f"{overview.label(case)}"
    shares = {one: times["backward"][one] / (times["forward"][one] + times["backward"][one]) for one in order}
    table = [
        [
            one,
            *(number(times[phase][one] / MS) for phase in HALVES),
            f"{shares[one]:.0%}",
            number(times["train"][one] / MS) if one in times["train"] else "-",
        ]
        for one in order
    ]
    return Chart(
        name=name,
        title=title,
        words=f"Forward and backward time stacked, a row a contender, and a tick at the training pass: {title}. "
        f"The share of the backward pass is {min(shares.values()):.0%} to {max(shares.values()):.0%}.",
        specification=style.specification(_draw(rows, whole, order), style.ROW * len(order)),
        table=Table(["library", "forward ms", "backward ms", "share of backward", "train ms"], table),
    )


def _draw(rows: list[dict[str, Any]], whole: list[dict[str, Any]], order: list[str]) -> Any:
    y = style.rows_axis(order)
    legend = alt.Legend(title=None)
    colour = alt.Color("phase:O", scale=alt.Scale(domain=["", *HALVES], range="ordinal"), legend=legend)
    colour["legend"]["values"] = list(HALVES)
    x = alt.X("ms:Q", stack="zero", axis=alt.Axis(title="ms", tickCount=5, format="~f"))
    bars_ = alt.Chart(style.data(rows)).mark_bar(size=style.ROW - 8)
    tips = style.tooltip(library="library:N", phase="phase:N", ms="ms:Q")
    layers: list[Any] = [bars_.encode(x, y, colour, order=alt.Order("place:Q"), tooltip=tips)]
    if whole:
        tick = alt.Chart(style.data(whole)).mark_tick(thickness=3, size=style.ROW - 2)
        layers.append(tick.encode(alt.X("ms:Q"), y, tooltip=style.tooltip(library="library:N", train_ms="ms:Q")))
    return style.layered(*layers)
