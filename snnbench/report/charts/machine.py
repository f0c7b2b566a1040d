"""The chart of the machine during a run: each probe over its usual level, by cell in the order of the run."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from snnbench.measures.probes.levels import WORDS
from snnbench.recording.drift import FACTOR, Level, relative
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.report.charts import style
from snnbench.report.numbers import counted
from snnbench.report.section import Chart, Table

MAX_POINTS = 1000
"""The most cells that are drawn; of more cells, every second, third and so on."""


def over_time(recording: Recording) -> Chart | None:
    """A line per probe; None if fewer than two cells have probes."""
    levels = relative([*recording.records, *recording.attempts])
    probed = [one for one in [*recording.records, *recording.attempts] if (one.cell, one.attempt) in levels]
    if len(probed) < 2:
        return None
    probed.sort(key=lambda one: one.started)
    known = [(one, levels[one.cell, one.attempt]) for one in probed]
    drifted = sum(level.drifted for _, level in known)
    names = [name for name in WORDS if any(name in level.probes for _, level in known)]
    times = [level.all for _, level in known]
    return Chart(
        name="noise-machine",
        title="The machine during the run",
        words=f"The time of fixed work beside each of {counted(len(known), 'cell')}, in the order of the run, over "
        f"what it usually took: {min(times):.2f} to {max(times):.2f} times as long.",
        specification=style.specification(_draw(known, names), style.PANEL // 2),
        table=_table(known, names),
        note=f"{counted(drifted, 'measurement')} beyond {FACTOR:g} or below {1 / FACTOR:g}: drifted."
        if drifted
        else "",
    )


def _table(known: Sequence[tuple[Record, Level]], names: Sequence[str]) -> Table:
    """Lowest, median and highest level of each probe."""
    rows = []
    for name in names:
        values = sorted(level.probes[name] for _, level in known if name in level.probes)
        middle = values[len(values) // 2]
        rows.append([WORDS[name], *(f"{value:.2f}" for value in (values[0], middle, values[-1]))])
    return Table(["work", "lowest", "median", "highest"], rows)


def _draw(known: Sequence[tuple[Record, Level]], names: Sequence[str]) -> Any:
    step = -(-len(known) // MAX_POINTS)
    rows: list[Mapping[str, Any]] = [
        {"cell": place + 1, "work": WORDS[name], "level": level.probes[name]}
        for place, (_, level) in enumerate(known)
        if place % step == 0
        for name in names
        if name in level.probes
    ]
    words = [WORDS[name] for name in names]
    values = [row["level"] for row in rows] + [1 / FACTOR, FACTOR]
    legend = alt.Legend(title=None)
    colour = alt.Color("work:N", scale=alt.Scale(domain=words, range="category"), legend=legend)
    shapes = [style.SHAPES[number % len(style.SHAPES)] for number in range(len(words))]
    shape = alt.Shape("work:N", scale=alt.Scale(domain=words, range=shapes))
    axis = alt.Axis(title="cell, in the order of the run", tickMinStep=1, format="d", grid=False)
    x = alt.X("cell:Q", scale=alt.Scale(domain=[0.5, len(known) + 0.5], nice=False), axis=axis)
    scale = alt.Scale(type="log", nice=False, domain=[min(values) * 0.95, max(values) * 1.05])
    y = alt.Y("level:Q", scale=scale, axis=alt.Axis(title="over its usual time", tickCount=5, format="~g"))
    base = alt.Chart(style.data([dict(row) for row in rows]))
    return style.layered(
        base.mark_line(strokeWidth=1).encode(x, y, colour),
        base.mark_point(filled=True, size=30, opacity=1).encode(x, y, colour, shape),
    )
