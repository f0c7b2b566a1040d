"""The site as files: every page, and its numbers as JSON and as Parquet."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from snnbench.files import replace_file
from snnbench.recording import schema
from snnbench.recording.reading import Recording
from snnbench.report import tidy
from snnbench.report.page import page as documents
from snnbench.report.page.citation import measured
from snnbench.report.section import Section
from snnbench.report.site import explorer_page, history
from snnbench.report.site.catalogue import Catalogue, Entry, file_name, narrowed
from snnbench.report.site.cell_page import cell
from snnbench.report.site.library_page import library
from snnbench.report.site.page import Page
from snnbench.report.site.questions_page import questions, results

HOME = "snnbench"
File = tuple[str, bytes]
"""The address of a file in the site, and its content."""


def write(catalogue: Catalogue, folder: Path, each: Callable[[int, int], None] = lambda done, of: None) -> int:
    """Write the site into `folder`, made if missing; `each` gets the progress. Returns the number of files.

    Files that are there already and not of this site stay, so the address of a cell outlives its recording.
    """
    pages_ = 3 + len(catalogue.by_library) + len(catalogue.by_cell) + len(catalogue.recordings)
    done = count = 0
    for address, content in files(catalogue):
        path = folder / address
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
        count += 1
        done += address.endswith(".html")
        each(done, pages_)
    return count


def files(catalogue: Catalogue) -> Iterator[File]:
    """Every file of the site."""
    yield "index.html", explorer_page.html(catalogue).encode()
    yield from _page(questions(catalogue))
    yield from _page(results(catalogue))
    pairs = history.pairs(catalogue)
    for name in catalogue.by_library:
        yield from _page(library(catalogue, name, pairs))
    for entries in catalogue.by_cell.values():
        yield from _page(cell(entries))
    for recording in catalogue.recordings:
        yield from _recording(recording)
    for name, document in (("record", schema.json_schema("record")), ("tidy", tidy.json_schema())):
        yield f"schemas/{name}.json", (json.dumps(document, indent=1) + "\n").encode()


def _recording(recording: Recording) -> Iterator[File]:
    """The page of a recording, as `snnbench report` makes it, and its tidy data."""
    name = file_name(recording.name)
    part = documents.part_of(recording, "")
    data = Section("data", "Data", files=[("JSON", f"{name}.json"), ("Parquet", f"{name}.parquet")])
    part = replace(part, sections=[*part.sections, data])
    title = f"{recording.name}, {measured(recording)}"
    yield f"recordings/{name}.html", documents.document(title, [part], [(HOME, "../index.html")]).encode()
    yield from _data(f"recordings/{name}", tidy.rows([recording]))


def _page(page: Page) -> Iterator[File]:
    """A page, and the tidy data of the results that it shows."""
    crumbs = [(HOME, f"{page.root}index.html"), ("all results", f"{page.root}results.html")]
    text = documents.document(page.title, [documents.Part(page.sections, folded=page.folded)], crumbs)
    yield f"{page.address}.html", text.encode()
    if page.entries:
        yield from _data(page.address, _rows(page.entries))


def _data(address: str, rows: list[tidy.Row]) -> Iterator[File]:
    yield f"{address}.json", tidy.to_json(rows).encode()
    yield f"{address}.parquet", tidy.to_parquet(rows)


def _rows(entries: Sequence[Entry]) -> list[tidy.Row]:
    return tidy.rows(narrowed(entry.recording, entry.records) for entry in entries)
