"""The page of a cell: a contender in a case, at an address that never changes.

Its chart has a row for each recording that measured the cell, the newest on top.
"""

import shlex
from collections.abc import Sequence
from typing import Any

import altair as alt

from snnbench.report import wording
from snnbench.report.charts import style
from snnbench.report.numbers import counted, spread
from snnbench.report.section import Chart, Section, Table
from snnbench.report.site import tables
from snnbench.report.site.catalogue import Entry, question
from snnbench.report.site.page import Page, neuron
from snnbench.report.text.recording_tables import extents
from snnbench.units import MS


def charts(entries: Sequence[Entry]) -> list[Chart]:
    """A chart of the headline phase if at least two of these recordings timed it; the entries are of one cell."""
    phase = next((entry.phase for entry in entries if entry.phase), "")
    rows = [_row(entry, phase) for entry in entries if (phase, "time") in entry.result.summaries]
    if len(rows) < 2:
        return []
    machines = list(dict.fromkeys(row["library"] for row in rows))
    title = f"Time of {phase} in each recording"
    table_rows = [[row["recording"], row["library"], row["version"], row["word"], row["shown"]] for row in rows]
    return [
        Chart(
            name="timeline",
            title=title,
            words=f"{title}: {counted(len(rows), 'recording')} on {counted(len(machines), 'kind')} of machine.",
            specification=style.specification(_draw(rows, machines, phase), style.ROW * len(rows) + 14),
            table=Table(["recording", "machine", "version", "verdict", f"{phase} ms"], table_rows, texts=4),
            note="Compare within a machine. What changed from one recording to the next is on the library's page.",
        )
    ]


def _row(entry: Entry, phase: str) -> dict[str, Any]:
    summary = entry.result.summaries[phase, "time"]
    low, high = (summary.low, summary.high) if summary.count > 1 else (None, None)
    return {
        "recording": entry.recording.name,
        "library": wording.model(entry.recording),
        "ms": summary.median / MS,
        "low": None if low is None else low / MS,
        "high": None if high is None else high / MS,
        "shown": spread(summary.median, low, high, MS),
        "version": entry.result.version or "-",
        "word": entry.result.verdict or "failed",
        "trials": summary.count,
    }


def _draw(rows: list[dict[str, Any]], machines: list[str], phase: str) -> Any:
    """`library` holds the machine here, since the colours of charts belong to this field."""
    scale = style.logarithmic([row[key] for row in rows for key in ("ms", "low", "high") if row[key]])
    x = alt.X("ms:Q", scale=scale, axis=alt.Axis(title=f"{phase}, ms", format="~g", tickCount=5))
    order = [row["recording"] for row in rows]
    axis = alt.Axis(title=None, labelPadding=6, ticks=False, domain=False)
    y = alt.Y("recording:N", sort=None, scale=alt.Scale(domain=order), axis=axis)
    tips = style.tooltip(machine="library:N", ms="shown:N", version="version:N", verdict="word:N", trials="trials:Q")
    colour, shape = (make(machines, machines) for make in (style.color, style.shape))
    layers: list[Any] = []
    if bounded := [row for row in rows if row["low"] is not None]:
        interval = alt.Chart(style.data(bounded)).mark_rule(strokeWidth=2)
        layers.append(interval.encode(alt.X("low:Q", scale=scale), alt.X2("high:Q"), y))
    points = alt.Chart(style.data(rows)).mark_point(size=70, filled=True, opacity=1)
    layers.append(points.encode(x, y, colour, shape, tooltip=tips))
    return style.layered(*layers)


def cell(entries: Sequence[Entry]) -> Page:
    """A contender in a case: every measurement of it, its proof, the case, and the commands that show and repeat it."""
    latest = entries[0]
    address = f"cells/{latest.name}"
    sections = [
        Section(
            "measurements",
            "Measurements",
            [wording.title(latest.case) + "."],
            tables=[tables.over_time(entries, "../")],
            charts=charts(entries),
            remarks=list(dict.fromkeys(reason for entry in entries for reason in entry.result.reasons)),
            files=[("JSON", f"{latest.name}.json")],
        ),
        Section(
            "proof",
            "Proof",
            [f"Answers that were compared with the float64 reference: {extent}." for extent in extents([latest.result])]
            or ["The newest recording has no comparison with the reference."],
        ),
        Section("case", "The case", tables=[_fields(latest)]),
        neuron(),
        _commands(latest),
    ]
    return Page(address, f"{latest.result.contender}, {latest.case.kind}, {latest.case.sizes()}", sections, entries)


def _fields(entry: Entry) -> Table:
    """All fields of a case."""
    rows = [[name.replace("_", " "), str(value)] for name, value in entry.case.as_dict().items()]
    return Table(["field", "value"], rows, texts=2)


def _commands(entry: Entry) -> Section:
    """The commands that print every repetition, and that measure the cell again."""
    records = [record for record in entry.records if record.status == "measured"] or entry.records
    show = ["snnbench", "show", records[0].cell, "--in", f"results/{entry.recording.name}"]
    rows = [
        ["every repetition, and every check", shlex.join([*show, "--samples"])],
        ["measure it again", shlex.join([*show, "--replay"])],
        ["check the recording", shlex.join(["snnbench", "check", f"results/{entry.recording.name}"])],
    ]
    about = f"It has {counted(len(entry.records), 'record')} in {entry.recording.name}, of {question(entry.recording)}."
    return Section(
        "commands", "See for yourself", [about], tables=[Table(["to", "run"], rows, texts=2, code=frozenset({"run"}))]
    )
