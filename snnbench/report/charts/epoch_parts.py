"""The chart of an epoch's parts: a stacked bar for each contender and strategy."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from snnbench.analysis.epochs import Epoch
from snnbench.report.charts import style
from snnbench.report.section import Chart, Table
from snnbench.report.text.epoch_table import S, strategy
from snnbench.units import number

PARTS = (
    *("reading", "transforming", "caching", "collating", "waiting", "transfer"),
    *("forward", "backward", "optimiser"),
)
"""The parts of an epoch in their order; the loader's parts are there if the loop's own process loads."""


def bars(epochs: Sequence[Epoch], title: str, name: str) -> Chart:
    """A bar for each epoch, the shortest on top, and a tick at max(loader, compute)."""
    ordered = sorted(epochs, key=lambda epoch: epoch.epoch_ns)
    labels = [f"{epoch.contender}, {strategy(epoch)}" for epoch in ordered]
    shown = [part for part in PARTS if any(epoch.parts_ns.get(part) for epoch in ordered)]
    rows = [
        {"library": label, "part": part, "place": PARTS.index(part), "s": epoch.parts_ns.get(part, 0.0) / S}
        for label, epoch in zip(labels, ordered, strict=True)
        for part in shown
    ]
    longer = [
        {"library": label, "s": epoch.longer_ns / S, "bound": epoch.bound}
        for label, epoch in zip(labels, ordered, strict=True)
    ]
    table = [
        [label, *(number(epoch.parts_ns.get(part, 0.0) / S) for part in shown), number(epoch.epoch_ns / S)]
        for label, epoch in zip(labels, ordered, strict=True)
    ]
    return Chart(
        name=name,
        title=title,
        words=f"The parts of an epoch stacked, a row for each contender and strategy, and a tick at the longer of the "
        f"loader alone and the network alone: {title}.",
        specification=style.specification(_draw(rows, longer, labels, shown), style.ROW * len(labels)),
        table=Table(["epoch", *(f"{part} s" for part in shown), "epoch s"], table),
    )


def _draw(rows: list[dict[str, Any]], longer: list[dict[str, Any]], labels: list[str], shown: list[str]) -> Any:
    y = style.rows_axis(labels)
    colour = alt.Color("part:N", scale=alt.Scale(domain=list(PARTS), range="diverging"), legend=alt.Legend(title=None))
    colour["legend"]["values"] = shown
    x = alt.X("s:Q", stack="zero", axis=alt.Axis(title="s", tickCount=5, format="~f"))
    stacked = alt.Chart(style.data(rows)).mark_bar(size=style.ROW - 8)
    tips = style.tooltip(epoch="library:N", part="part:N", s="s:Q")
    tick = alt.Chart(style.data(longer)).mark_tick(thickness=3, size=style.ROW - 2)
    return style.layered(
        stacked.encode(x, y, colour, order=alt.Order("place:Q"), tooltip=tips),
        tick.encode(alt.X("s:Q"), y, tooltip=style.tooltip(epoch="library:N", longer_s="s:Q", bound_by="bound:N")),
    )
