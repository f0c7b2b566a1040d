"""The page of questions, and the page of every result."""

from collections.abc import Sequence

from snnbench.report import wording
from snnbench.report.page.citation import measured
from snnbench.report.section import Section, Table
from snnbench.report.site import tables
from snnbench.report.site.catalogue import Catalogue, Entry, asks, file_name
from snnbench.report.site.page import Page, files, neuron
from snnbench.report.site.question_page import address_of

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
