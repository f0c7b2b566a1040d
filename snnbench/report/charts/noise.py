"""The chart of repetitions in order, of one phase of one contender in one case: a line per trial."""

from statistics import median
from typing import Any

import altair as alt

from snnbench.cases.case import Case
from snnbench.report.charts import style
from snnbench.report.numbers import counted
from snnbench.report.overview import Overview
from snnbench.report.section import Chart, Table
from snnbench.units import MS, number

TRIALS = 10
"""The most trials that are drawn of one cell."""
REPETITIONS = 200
"""The most repetitions that are drawn of one trial; of more, every second, third and so on."""


def repetitions(overview: Overview, case: Case, contender: str, phase: str, name: str) -> Chart:
    """Every repetition of every trial."""
    result = next(s for s in overview.results[case] if s.contender == contender)
    trials = result.repetitions[phase][:TRIALS]
    rows = []
    for number_, taken_ns in enumerate(trials):
        step = -(-len(taken_ns) // REPETITIONS)
        rows += [
            {"trial": f"trial {number_ + 1}", "repetition": place + 1, "ms": ns / MS}
            for place, ns in enumerate(taken_ns)
            if place % step == 0
        ]
    title = f"{contender}: {overview.label(case)}"
    flags = f" Flagged: {', '.join(sorted(result.flags))}." if result.flags else ""
    table = [
        [
            f"trial {place + 1}",
            str(len(taken)),
            *(number(value / MS) for value in (min(taken), median(taken), max(taken))),
        ]
        for place, taken in enumerate(trials)
    ]
    return Chart(
        name=name,
        title=title,
        words=f"Time of each repetition of {phase}, in order, {counted(len(trials), 'trial')}: {title}.{flags}",
        specification=style.specification(_draw(rows, phase), style.PANEL // 2),
        table=Table(["trial", "repetitions", "lowest ms", "median ms", "highest ms"], table),
        note=flags.strip(),
    )


def _draw(rows: list[dict[str, Any]], phase: str) -> Any:
    names = list(dict.fromkeys(row["trial"] for row in rows))
    legend = alt.Legend(title=None)
    colour = alt.Color("trial:N", scale=alt.Scale(domain=names, range="category"), legend=legend)
    shape = alt.Shape("trial:N", scale=alt.Scale(domain=names, range=[style.SHAPES[n % 6] for n in range(len(names))]))
    values = [row["ms"] for row in rows]
    scale = alt.Scale(domain=[min(values) * 0.95, max(values) * 1.05], zero=False, nice=False)
    last = max(row["repetition"] for row in rows)
    x_axis = alt.Axis(title="repetition", tickMinStep=1, format="d", grid=False)
    x = alt.X("repetition:Q", scale=alt.Scale(domain=[0.5, last + 0.5], nice=False), axis=x_axis)
    y = alt.Y("ms:Q", scale=scale, axis=alt.Axis(title=f"{phase}, ms", tickCount=4, format="~f"))
    base = alt.Chart(style.data(rows))
    return style.layered(
        base.mark_line(strokeWidth=1).encode(x, y, colour),
        base.mark_point(filled=True, size=30, opacity=1).encode(x, y, colour, shape),
    )
