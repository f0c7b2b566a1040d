"""The site as files: every page, and its numbers as JSON and as Parquet."""

import gc
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

from snnbench.files import replace_file
from snnbench.machine.cpus import usable_cpus
from snnbench.recording import schema
from snnbench.report import tidy
from snnbench.report.page import page as documents
from snnbench.report.page.citation import measured
from snnbench.report.section import Section
from snnbench.report.site import explorer_page, history
from snnbench.report.site.catalogue import Catalogue, Entry, file_name, narrowed
from snnbench.report.site.cell_page import cell
from snnbench.report.site.library_page import library
from snnbench.report.site.page import Page
from snnbench.report.site.questions import question, questions, results

HOME = "snnbench"
File = tuple[str, bytes]
"""The address of a file in the site, and its content."""
Part = tuple[Callable[[Catalogue, str], Iterator[File]], str]
"""Files that are made together: the function that makes them, and the name of what they show."""
_pairs = cache(history.pairs)


def write(catalogue: Catalogue, folder: Path, each: Callable[[int, int], None] = lambda done, of: None) -> int:
    """Write the site into `folder`, made if missing, on all CPUs. Returns the number of files.

    `each` gets the progress in parts: a page, or some that are made together. Files that are there already and not of
    this site stay, so the address of a cell outlives its recording.
    """
    parts, count = _parts(catalogue), 0
    with ProcessPoolExecutor(usable_cpus(), initializer=_prepare, initargs=(catalogue, folder)) as pool:
        for done, written in enumerate(pool.map(_write, parts), start=1):
            count += written
            each(done, len(parts))
    return count


def files(catalogue: Catalogue) -> Iterator[File]:
    """Every file of the site."""
    for make, name in _parts(catalogue):
        yield from make(catalogue, name)


def _parts(catalogue: Catalogue) -> list[Part]:
    """All parts, those that take longest first."""
    parts: list[Part] = [(_first, ""), (_tables, "")]
    parts += [(_question, name) for name in catalogue.by_question]
    parts += [(_recording, recording.name) for recording in catalogue.recordings]
    parts += [(_library, name) for name in catalogue.by_library]
    return parts + [(_cell, name) for name in catalogue.by_cell]


_work: tuple[Catalogue, Path]
"""In a process of the pool: the catalogue, and the folder of the site."""


def _prepare(catalogue: Catalogue, folder: Path) -> None:
    """Begin a process of the pool. The main process is the one that Ctrl-C ends."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # the catalogue stays to the end, and every collection would walk through its million objects
    _work = catalogue, folder


def _write(part: Part) -> int:
    """Write the files of a part. Returns their number."""
    (make, name), (catalogue, folder), count = part, _work, 0
    for address, content in make(catalogue, name):
        path = folder / address
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
        count += 1
    return count


def _first(catalogue: Catalogue, _: str) -> Iterator[File]:
    yield "index.html", explorer_page.html(catalogue).encode()
    for name, document in (("record", schema.json_schema("record")), ("tidy", tidy.json_schema())):
        yield f"schemas/{name}.json", (json.dumps(document, indent=1) + "\n").encode()


def _tables(catalogue: Catalogue, _: str) -> Iterator[File]:
    yield from _page(questions(catalogue))
    yield from _page(results(catalogue))


def _question(catalogue: Catalogue, name: str) -> Iterator[File]:
    yield from _page(question(catalogue, name))


def _library(catalogue: Catalogue, name: str) -> Iterator[File]:
    yield from _page(library(catalogue, name, _pairs(catalogue)))


def _cell(catalogue: Catalogue, name: str) -> Iterator[File]:
    """The page of a cell; its data are so few that they have one format."""
    page = cell(catalogue.by_cell[name])
    yield _html(page)
    yield f"{page.address}.json", tidy.to_json(_rows(page.entries)).encode()


def _recording(catalogue: Catalogue, name: str) -> Iterator[File]:
    """The page of a recording, as `snnbench report` makes it, and its tidy data."""
    recording = next(each for each in catalogue.recordings if each.name == name)
    name = file_name(name)
    part = documents.part_of(recording, "")
    data = Section("data", "Data", files=[("JSON", f"{name}.json"), ("Parquet", f"{name}.parquet")])
    part = replace(part, sections=[*part.sections, data])
    title = f"{recording.name}, {measured(recording)}"
    yield f"recordings/{name}.html", documents.document(title, [part], [(HOME, "../index.html")]).encode()
    yield from _data(f"recordings/{name}", tidy.rows([recording]))


def _page(page: Page) -> Iterator[File]:
    """A page, and the tidy data of the results that it shows."""
    yield _html(page)
    if page.entries:
        yield from _data(page.address, _rows(page.entries))


def _html(page: Page) -> File:
    crumbs = [(HOME, f"{page.root}index.html"), ("all results", f"{page.root}results.html")]
    text = documents.document(page.title, [documents.Part(page.sections, folded=page.folded)], crumbs)
    return f"{page.address}.html", text.encode()


def _data(address: str, rows: list[tidy.Row]) -> Iterator[File]:
    yield f"{address}.json", tidy.to_json(rows).encode()
    yield f"{address}.parquet", tidy.to_parquet(rows)


def _rows(entries: Sequence[Entry]) -> list[tidy.Row]:
    return tidy.rows(narrowed(entry.recording, entry.records) for entry in entries)
