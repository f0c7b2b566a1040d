"""The chart of ratios against one size: a line per contender, and the baseline at 1."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from snnbench.cases.case import Case
from snnbench.report import wording
from snnbench.report.charts import style
from snnbench.report.numbers import counted
from snnbench.report.overview import Overview
from snnbench.report.section import Chart, Table

Ratios = dict[str, dict[int, float]]
"""By contender: the ratio at each size."""


def ratios(overview: Overview, cases: Sequence[Case], axis: str, phase: str) -> Ratios:
    """Times of a phase over the baseline's, where both are ranked; without the baseline itself."""
    by_contender: Ratios = {}
    for case in cases:
        points = {point.contender: point for point in overview.points(case, phase) if point.ranked}
        if base := points.pop(overview.baseline, None):
            for name, point in points.items():
                by_contender.setdefault(name, {})[wording.size(case, axis)] = point.value / base.value
    return by_contender


def against(overview: Overview, cases: Sequence[Case], axis: str, phase: str, name: str) -> Chart:
    """Ratios of a phase in cases that differ along one axis."""
    by_contender = ratios(overview, cases, axis, phase)
    rows = [
        {"library": contender, "size": size, "ratio": ratio, "shown": f"{ratio:.2f}"}
        for contender, by_size in by_contender.items()
        for size, ratio in by_size.items()
    ]
    sizes = [wording.size(case, axis) for case in cases]
    letter = cases[0].SIZES[axis][0]
    title = f"{overview.name(cases[0])}: {wording.sizes(cases[0], axis)}".rstrip(": ")
    cells = [
        [contender, *(f"{by_size[size]:.2f}" if size in by_size else "-" for size in sizes)]
        for contender, by_size in by_contender.items()
    ]
    return Chart(
        name=name,
        title=title,
        words=(
            f"Time of {phase} over that of {overview.baseline} against {wording.axis_name(cases[0], axis)}, both "
            f"logarithmic: {title}. {counted(len(by_contender), 'line')}, {letter} from {min(sizes)} to {max(sizes)}."
        ),
        specification=style.specification(_draw(overview, cases, axis, rows, phase), style.PANEL),
        table=Table(
            ["library", *(f"{letter}={size}" for size in sizes)],
            cells,
            caption=f"time of {phase} over that of {overview.baseline}",
        ),
    )


def _draw(overview: Overview, cases: Sequence[Case], axis: str, rows: list[dict[str, Any]], phase: str) -> Any:
    sizes = [wording.size(case, axis) for case in cases]
    x = alt.X(
        "size:Q",
        scale=style.logarithmic(sizes, 2),
        axis=alt.Axis(title=wording.axis_name(cases[0], axis), values=sizes, format="d", grid=False, labelOverlap=True),
    )
    scale = style.logarithmic([1.0, *(row["ratio"] for row in rows)])
    title = f"{phase}, times {overview.baseline}"
    y = alt.Y("ratio:Q", scale=scale, axis=alt.Axis(title=title, format="~g", tickCount=6))
    shown = sorted({row["library"] for row in rows})
    color, shape, dash = (make(overview.contenders, shown) for make in (style.color, style.shape, style.dash))
    tips = style.tooltip(library="library:N", size="size:Q", ratio="shown:N")
    base = [{"size": size, "ratio": 1.0} for size in sizes]
    points = alt.Chart(style.data(rows)).mark_point(filled=True, size=55, opacity=1)
    return style.layered(
        alt.Chart(style.data(base)).mark_line(strokeDash=[1, 3], strokeWidth=2).encode(x, y),
        alt.Chart(style.data(rows)).mark_line(strokeWidth=1.5).encode(x, y, color, dash),
        points.encode(x, y, color, shape, tooltip=tips),
    )
