"""The page of a question: its newest answer on each machine, its charts, what was published on it, its recordings."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from snnbench.recording.reading import Recording
from snnbench.report import answer, wording
from snnbench.report.overview import find
from snnbench.report.page import sections
from snnbench.report.page.citation import measured
from snnbench.report.section import Section, Table
from snnbench.report.site import published
from snnbench.report.site.catalogue import Catalogue, asks, file_name
from snnbench.report.site.page import Page


def address_of(name: str) -> str:
    """The address of a question's page in the site, without `.html`."""
    return f"questions/{file_name(name)}"


def question(catalogue: Catalogue, name: str) -> Page:
    """For each machine its newest answer and charts, beside what was published; then all recordings of the question."""
    recordings = catalogue.by_question[name]
    newest = [each for each in recordings if each in catalogue.latest]
    there = published.load(name)
    parts = [_asks(recordings[0])]
    for number, each in enumerate(newest, start=1):
        parts += _on_machine(each, number)
        if there:
            parts += published.sections(there, each, catalogue.results_of(each), f"published-{number}")
    return Page(address_of(name), name, [*parts, _recordings(recordings)])


def _asks(recording: Recording) -> Section:
    analysis = str(recording.resolved.get("analysis", "")).strip()
    folded = [("What this config asks", analysis)] if analysis else []
    return Section("question", "The question", [asks(recording)], folded=folded)


def _on_machine(recording: Recording, number: int) -> Iterator[Section]:
    """The answer of a recording and its times, as its own page shows them."""
    overview = find(recording)
    title = f"{wording.model(recording)}, {measured(recording)}"
    yield replace(sections.headline(overview), name=f"answer-{number}", title=title)
    times = sections.times(overview)
    charts = [replace(chart, name=f"recording-{number}-{chart.name}") for chart in times.charts]
    yield replace(times, name=f"time-{number}", charts=charts)


def _recordings(recordings: Sequence[Recording]) -> Section:
    rows = [
        [each.name, wording.model(each), measured(each), each.version or "-", answer.coverage(each)]
        for each in recordings
    ]
    targets = [f"../recordings/{file_name(each.name)}.html" for each in recordings]
    columns = ["recording", "machine", "day", "snnbench", "cells"]
    return Section("recordings", "Recordings", tables=[Table(columns, rows, texts=len(columns), targets=targets)])
