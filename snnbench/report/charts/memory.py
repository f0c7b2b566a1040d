"""The chart of memory of one pass: static memory, memory retained for the backward pass, and the peak above both."""

from typing import Any

import altair as alt

from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.report.charts import style
from snnbench.report.overview import Overview
from snnbench.report.section import Chart, Table
from snnbench.units import MIB, number

PARTS = ("static", "retained", "peak above these")
OUT_OF_MEMORY = ("oom-device", "oom-host")


def phase_of(overview: Overview) -> str:
    """The phase with a memory measurement; empty if memory was not measured."""
    keys = {key for found in overview.results.values() for s in found for key in s.summaries}
    return next((phase for phase, metric in sorted(keys, reverse=True) if metric == "static"), "")


def parts(result: Result, phase: str, memory: str) -> dict[str, float]:
    """Bytes by part, which add up to the memory in use at the peak; without `retained` if it is unknown."""
    medians = {metric: s.median for (of, metric), s in result.summaries.items() if of == phase}
    if "static" not in medians or f"{memory}_peak" not in medians:
        return {}
    sizes = {"static": medians["static"]}
    peak, retained = medians[f"{memory}_peak"], medians.get(f"{memory}_retained")
    if retained is not None:
        sizes["retained"] = min(retained, peak)
    return sizes | {"peak above these": peak - sizes.get("retained", 0.0)}


def bars(overview: Overview, case: Case, name: str) -> Chart:
    """A stacked bar for each contender, the smallest on top; contenders that ran out of memory come last."""
    phase, memory = phase_of(overview), overview.memory(case)
    by_contender = {s.contender: parts(s, phase, memory) for s in overview.results[case]}
    by_contender = {
        name: held for name, held in sorted(by_contender.items(), key=lambda item: sum(item[1].values())) if held
    }
    failed = {
        contender: str(record.outcome.kind)
        for (other, contender), records in overview.failures.items()
        for record in records
        if other == case and contender not in by_contender and record.outcome.kind in OUT_OF_MEMORY
    }
    order = [*by_contender, *failed]
    rows = [
        {"library": contender, "part": part, "place": PARTS.index(part), "mib": held / MIB}
        for contender, parts_ in by_contender.items()
        for part, held in parts_.items()
    ]
    title = f"{overview.label(case)}"
    table_rows = [
        [contender, *(number(held[p] / MIB) if p in held else "-" for p in PARTS), number(sum(held.values()) / MIB)]
        for contender, held in by_contender.items()
    ]
    table_rows += [[contender, kind, "-", "-", "-"] for contender, kind in failed.items()]
    least = next(iter(by_contender), "")
    lacking = [contender for contender, held in by_contender.items() if "retained" not in held]
    return Chart(
        name=name,
        title=f"{title}: {memory} memory of {phase}",
        words=f"Memory of {phase} on the {memory}: {title}. Stacked bars; {least} takes the least.",
        specification=style.specification(_draw(rows, order, failed), style.ROW * len(order)),
        table=Table(["library", *(f"{part} MiB" for part in PARTS), "sum MiB"], table_rows),
        note=f"Retained memory is not known of {', '.join(lacking)}." if lacking else "",
    )


def _draw(rows: list[dict[str, Any]], order: list[str], failed: dict[str, str]) -> Any:
    y = style.rows_axis(order)
    legend = alt.Legend(title=None)
    colour = alt.Color("part:O", sort=list(PARTS), scale=alt.Scale(domain=list(PARTS), range="ordinal"), legend=legend)
    x = alt.X("sum(mib):Q", stack="zero", axis=alt.Axis(title="MiB", tickCount=5, format="~f"))
    tips = style.tooltip(library="library:N", part="part:N", MiB="mib:Q")
    bars_ = alt.Chart(style.data(rows)).mark_bar(size=style.ROW - 8)
    layers: list[Any] = [bars_.encode(x, y, colour, order=alt.Order("place:Q"), tooltip=tips)]
    if failed:
        labels = [{"library": name, "text": f"\u2715 {kind}"} for name, kind in failed.items()]
        layers.append(alt.Chart(style.data(labels)).mark_text(align="left", x=4).encode(y, text="text:N"))
    return style.layered(*layers)
