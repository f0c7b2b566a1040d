"""The page of questions, and the page of every result."""

from collections.abc import Sequence

from snnbench.report import answer, wording
from snnbench.report.page.citation import measured
from snnbench.report.section import Section, Table
from snnbench.report.site import tables
from snnbench.report.site.catalogue import Catalogue, Entry, asks, file_name
from snnbench.report.site.page import Page, files, neuron

TITLE = "Questions, answers and recordings"
SCHEMAS = (("schema of records", "schemas/record.json"), ("schema of tidy data", "schemas/tidy.json"))


def questions(catalogue: Catalogue) -> Page:
    """The newest answer to each question on each machine, the libraries, the neuron, all recordings."""
    answered = [_question(catalogue, name) for name in catalogue.by_question]
    rows = [[name, *_reach(entries)] for name, entries in catalogue.by_library.items()]
    targets = [f"libraries/{file_name(name)}.html" for name in catalogue.by_library]
    libraries = Section(
        "libraries",
        "Libraries",
        ["Each page says where a library is exact, how fast it is, how its times grow, and what changed."],
        tables=[Table(["library", "contenders", "exact cells", "cells"], rows, targets=targets)],
    )
    whole = Section(
        "everything",
        "Everything",
        ["One table has every result of every recording, to sort and to filter."],
        tables=[Table(["page", "rows"], [["All results", str(len(catalogue.entries))]], targets=["results.html"])],
        files=[("tidy data as JSON", "results.json"), ("as Parquet", "results.parquet"), *SCHEMAS],
    )
    return Page("questions", TITLE, [*answered, whole, libraries, neuron()])


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


def _question(catalogue: Catalogue, name: str) -> Section:
    """The newest answer to a question on each machine, and the recordings that answer it."""
    recordings = catalogue.by_question[name]
    answers = [
        (f"{wording.model(each)}, {measured(each)}", catalogue.summaries[each.name])
        for each in recordings
        if each in catalogue.latest
    ]
    rows = [
        [each.name, wording.model(each), measured(each), each.version or "-", answer.coverage(each)]
        for each in recordings
    ]
    targets = [f"recordings/{file_name(each.name)}.html" for each in recordings]
    columns = ["recording", "machine", "day", "snnbench", "cells"]
    table = Table(columns, rows, texts=len(columns), targets=targets)
    return Section(f"question-{file_name(name)}", name, [asks(recordings[0])], answers=answers, tables=[table])


def _reach(entries: Sequence[Entry]) -> list[str]:
    """The numbers of a library's contenders, exact cells and cells. A time would compare different work."""
    exact = {entry.name for entry in entries if entry.result.verdict == "exact"}
    contenders = {entry.result.contender for entry in entries}
    cells = {entry.name for entry in entries}
    return [str(len(contenders)), str(len(exact)), str(len(cells))]
