"""The chart of time against peak memory, with the Pareto front."""

from typing import Any

import altair as alt

from snnbench.cases.case import Case
from snnbench.report.charts import style
from snnbench.report.numbers import listed
from snnbench.report.overview import Overview
from snnbench.report.section import Chart, Table
from snnbench.units import MIB, MS, number

Pairs = dict[str, tuple[float, float]]
"""(time, bytes) by contender."""


def front(pairs: Pairs) -> list[str]:
    """The contenders on the Pareto front, by time."""

    def beaten(name: str) -> bool:
        time, held = pairs[name]
        return any(t <= time and b <= held and (t, b) != (time, held) for t, b in pairs.values())

    return sorted((name for name in pairs if not beaten(name)), key=lambda name: pairs[name])


def pairs_of(overview: Overview, case: Case, phase: str, memory_phase: str) -> Pairs:
    """Time and peak of every ranked contender with both; a logarithmic axis cannot show a peak of 0."""
    memory = {p.contender: p.value for p in overview.points(case, memory_phase, f"{overview.memory(case)}_peak")}
    times = {p.contender: p.value for p in overview.points(case, phase) if p.ranked}
    return {one: (time, memory[one]) for one, time in times.items() if memory.get(one, 0) > 0}


def scatter(overview: Overview, case: Case, phase: str, memory_phase: str, name: str) -> Chart:
    """A mark for each pair of `pairs_of`, and a line through the front."""
    memory, pairs = overview.memory(case), pairs_of(overview, case, phase, memory_phase)
    best = front(pairs)
    rows: list[dict[str, Any]] = [
        {"library": one, "ms": time / MS, "mib": held / MIB, "front": "yes" if one in best else "no"}
        for one, (time, held) in sorted(pairs.items(), key=lambda item: item[1])
    ]
    title = f"{overview.label(case)}"
    return Chart(
        name=name,
        title=title,
        words=f"Time of {phase} against peak {memory} memory, both logarithmic: {title}. On the front: {listed(best)}.",
        specification=style.specification(_draw(overview, rows, phase, memory), style.PANEL),
        table=Table(
            ["library", "on the front", f"{phase} ms", "peak MiB"],
            [[row["library"], row["front"], number(row["ms"]), number(row["mib"])] for row in rows],
            texts=2,
        ),
        note=f"On the front, from the fastest to the smallest: {listed(best)}.",
    )


def _draw(overview: Overview, rows: list[dict[str, Any]], phase: str, memory: str) -> Any:
    times, sizes = [row["ms"] for row in rows], [row["mib"] for row in rows]
    x = alt.X("ms:Q", scale=style.logarithmic(times), axis=alt.Axis(title=f"{phase}, ms", format="~g", tickCount=5))
    y_axis = alt.Axis(title=f"peak {memory} memory, MiB", format="~g", tickCount=5)
    y = alt.Y("mib:Q", scale=style.logarithmic(sizes), axis=y_axis)
    shown = [row["library"] for row in rows]
    tips = style.tooltip(library="library:N", ms="ms:Q", MiB="mib:Q", on_the_front="front:N")
    on_front = [row for row in rows if row["front"] == "yes"]
    line = alt.Chart(style.data(on_front)).mark_line(interpolate="step-after", strokeWidth=1, strokeDash=[4, 3])
    points = alt.Chart(style.data(rows)).mark_point(filled=True, size=90, opacity=1)
    color, shape = style.color(overview.contenders, sorted(shown)), style.shape(overview.contenders, sorted(shown))
    return style.layered(line.encode(x, y), points.encode(x, y, color, shape, tooltip=tips))
