"""The pages of questions: one for each question, the page that lists them, and the page of every result."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from snnbench.recording.reading import Recording
from snnbench.report import answer, wording
from snnbench.report.overview import find
from snnbench.report.page import sections
from snnbench.report.page.citation import measured
from snnbench.report.section import Section, Table
from snnbench.report.site import published, tables
from snnbench.report.site.catalogue import Catalogue, Entry, asks, file_name
from snnbench.report.site.page import Page, files, neuron


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


TITLE = "Questions, answers and recordings"
SCHEMAS = (("schema of records", "schemas/record.json"), ("schema of tidy data", "schemas/tidy.json"))


def questions(catalogue: Catalogue) -> Page:
    """The questions, each with a page of its own, the libraries, the neuron, all recordings."""
    by_question = catalogue.by_question
    rows = [
        [name, asks(each[0]), str(len({wording.model(one) for one in each})), measured(each[0])]
        for name, each in by_question.items()
    ]
    targets = [f"{address_of(name)}.html" for name in by_question]
    answered = Section(
        "questions",
        "Questions",
        ["Each page has the newest answer on each machine, its charts, and what others published on it."],
        tables=[Table(["question", "what it asks", "machines", "newest"], rows, texts=2, targets=targets)],
    )
    rows = [[name, *_reach(entries)] for name, entries in catalogue.by_library.items()]
    targets = [f"libraries/{file_name(name)}.html" for name in catalogue.by_library]
    libraries = Section(
        "libraries",
        "Libraries",
        ["Each page says where a library stands, how to run it, what to know before choosing it, and its code."],
        tables=[Table(["library", "contenders", "exact cells", "cells"], rows, targets=targets)],
    )
    whole = Section(
        "everything",
        "Everything",
        ["One table has every result of every recording, to sort and to filter."],
        tables=[Table(["page", "rows"], [["All results", str(len(catalogue.entries))]], targets=["results.html"])],
        files=[("tidy data as JSON", "results.json"), ("as Parquet", "results.parquet"), *SCHEMAS],
    )
    return Page("questions", TITLE, [answered, whole, libraries, neuron()])


def results(catalogue: Catalogue) -> Page:
    """Every result of every recording in one table."""
    sentences = [
        "A heading sorts by its column, the field filters by words, a # is the link to its row, and a name leads to "
        "the page of its cell. Times of different machines, and of different work, answer different questions."
    ]
    section = Section(
        "results", "Every result", sentences, tables=[tables.times(catalogue.entries, "")], files=files("results")
    )
    return Page("results", "All results", [section], catalogue.entries)


def _reach(entries: Sequence[Entry]) -> list[str]:
    """The numbers of a library's contenders, exact cells and cells. A time would compare different work."""
    exact = {entry.name for entry in entries if entry.result.verdict == "exact"}
    contenders = {entry.result.contender for entry in entries}
    cells = {entry.name for entry in entries}
    return [str(len(contenders)), str(len(exact)), str(len(cells))]
