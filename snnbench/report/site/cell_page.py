"""The page of a cell: a contender in a case, at an address that never changes."""

import shlex
from collections.abc import Sequence

from snnbench.report import wording
from snnbench.report.numbers import counted
from snnbench.report.section import Section, Table
from snnbench.report.site import tables, timeline
from snnbench.report.site.catalogue import Entry, question
from snnbench.report.site.page import Page, files, neuron
from snnbench.report.text.recording_tables import extents


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
            charts=timeline.charts(entries),
            remarks=list(dict.fromkeys(reason for entry in entries for reason in entry.result.reasons)),
            files=files(latest.name),
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
