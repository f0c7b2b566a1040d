"""The dashed lines of models in a chart of time against the number of devices."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from snnbench.analysis.pipelines import pipelines
from snnbench.cases.case import Case
from snnbench.report import wording
from snnbench.report.charts import style
from snnbench.report.findings import Findings
from snnbench.report.numbers import listed
from snnbench.report.pipelines import LOWER_BOUNDS, MODELS, times_ms

DASHES = ([8, 4], [4, 3])
"""The dashes of the models, in the colour of the axes' titles."""
SYMBOL = 500
"""The square of the length of a line in the legend, in px."""


def rows(findings: Findings, cases: Sequence[Case], axis: str, phase: str) -> list[dict[str, Any]]:
    """A row for each model of each pipeline in cases that differ in their number of processes; else none."""
    if len({case.processes for case in cases}) == 1:
        return []
    modelled = pipelines(findings.results, cases, phase)
    several = len({one.contender for one in modelled}) > 1
    return [
        {
            "model": f"{name} of {one.contender}" if several else name,
            "contender": one.contender,
            "size": wording.size(one.case, axis),
            "ms": ms,
        }
        for one in modelled
        for name, ms in zip(MODELS, times_ms(one.predicted), strict=True)
    ]


def lines(rows_: Sequence[dict[str, Any]], x: alt.X, y: alt.Y) -> Any:
    """A line for each model, with a legend of its own above the chart: beside the contenders' it has no room."""
    names = list(dict.fromkeys(row["model"] for row in rows_))
    dashes = [DASHES[number % len(DASHES)] for number in range(len(names))]
    columns = 1 if len(names) > len(MODELS) else 2  # names with a contender are long
    legend = alt.Legend(title=None, orient="top", columns=columns, symbolType="stroke", symbolSize=SYMBOL)
    dash = alt.StrokeDash("model:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    return alt.Chart(style.data(rows_)).mark_line(strokeWidth=1.5).encode(x, y, dash)


def words(rows_: Sequence[dict[str, Any]]) -> str:
    """The names of these lines in a sentence, to follow another; empty without any."""
    return f" Dashed: {listed(list(dict.fromkeys(row['model'] for row in rows_)))}." if rows_ else ""


def note(rows_: Sequence[dict[str, Any]]) -> str:
    """What these lines are; empty without any."""
    if not rows_:
        return ""
    contenders = listed(list(dict.fromkeys(row["contender"] for row in rows_)))
    return f"The dashed lines without marks are models of {contenders}. {LOWER_BOUNDS}"
