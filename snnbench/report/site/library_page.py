"""The page of a library: where it is exact, how fast it is, how its times grow, and what changed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from snnbench.recording.reading import Recording
from snnbench.report import wording
from snnbench.report.charts import lines
from snnbench.report.overview import Overview, find
from snnbench.report.page import scaling
from snnbench.report.section import Chart, Section, Table
from snnbench.report.site import history, tables
from snnbench.report.site.catalogue import Catalogue, Entry, file_name, narrowed
from snnbench.report.site.page import Page, files

GROWTH = "How its times grow"
CHARTS = 8
"""The most charts of growth on a page."""


def library(catalogue: Catalogue, name: str, pairs: Sequence[history.Pair]) -> Page:
    """A library: its verdicts, its times, their growth, and how they changed."""
    entries, address = catalogue.by_library[name], f"libraries/{file_name(name)}"
    newest = [entry for entry in entries if entry.recording in catalogue.latest]
    sections = [
        Section(
            "verdicts",
            "Where it is exact",
            ["The newest verdict on each variant, by kind of work and format. The table lists only recorded work."],
            tables=[tables.verdicts(entries)],
        ),
        Section(
            "times",
            "How fast it is",
            ["Times of the newest recording of each question on each machine."],
            tables=[tables.times(newest, "../")],
            files=files(file_name(name)),
        ),
        _growth(catalogue.latest, entries),
        history.section(catalogue, pairs, name),
    ]
    return Page(address, name, sections, entries)


def _growth(recordings: Sequence[Recording], entries: Iterable[Entry]) -> Section:
    """The growth of a library's times in every recording that sweeps a size."""
    names = {entry.result.contender for entry in entries}
    made: Section | None = None
    tables_: list[Table] = []
    charts: list[Chart] = []
    remarks: list[str] = []
    for number, recording in enumerate(recordings, start=1):
        records = [record for record in recording.records if record.label in names]
        settings = wording.settings({record.case: None for record in records})
        swept = [wording.swept(cases, axis) for cases in settings.values() for axis in wording.axes(cases)]
        if recording.sides or not any(swept):
            continue
        overview = find(narrowed(recording, records))
        made = scaling.section(overview)
        tables_ += [replace(table, caption=f"{recording.name}. {table.caption}") for table in made.tables]
        charts += [replace(chart, name=f"growth-{number}-{chart.name}") for chart in (*_lines(overview), *made.charts)]
        remarks += made.remarks
    if made is None:
        return Section("growth", GROWTH, ["No recording sweeps a size of this library over three values or more."])
    return replace(made, name="growth", title=GROWTH, tables=tables_, charts=charts[:CHARTS], remarks=remarks)


def _lines(overview: Overview) -> Iterator[Chart]:
    """A chart of times against the main size for each setting that sweeps it."""
    for number, cases in enumerate(overview.settings.values(), start=1):
        axis = wording.main_axis(cases[0])
        if overview.headline and overview.timed(family := wording.swept(cases, axis)):
            yield lines.against(overview, family, axis, overview.headline, f"time-{number}")
