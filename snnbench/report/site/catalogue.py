"""The catalogue: the recordings of a folder, the newest first, and every result in them."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from snnbench.analysis.results import Result, headline, results_by_case
from snnbench.cases.case import Case
from snnbench.digest import digest
from snnbench.exits import UserError
from snnbench.recording import lookup
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.report.page.citation import measured
from snnbench.report.wording import model

LONGEST = 150
"""The most letters of a text in the name of a file."""
SAME = ("exact", "equivalent")
"""The verdicts of the same work."""


class NoRecordings(UserError):
    """A folder holds no recording; the message names it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The result of one contender in one case of one recording, and its records.

    `phase` is the recording's headline phase, or empty.
    """

    recording: Recording
    case: Case
    result: Result
    phase: str
    records: list[Record]

    @property
    def name(self) -> str:
        """The name of the cell: the same in every recording, whenever it is measured."""
        return cell_name(self.case, self.result.contender)

    @property
    def library(self) -> str:
        """The library of the contender."""
        return self.result.contender.partition("/")[0]

    @property
    def day(self) -> str:
        """The day of the recording."""
        return measured(self.recording)


def cell_name(case: Case, contender: str) -> str:
    """A name for a contender in a case, of letters and digits: files and addresses are made of it."""
    return digest([case.key, contender])


def file_name(text: str) -> str:
    """A name of a file or folder for any text: the text itself if that is safe and not too long for a file system."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", text) and len(text) <= LONGEST:
        return text
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', text).strip('-')[:LONGEST]}-{digest(text)}"


def question(recording: Recording) -> str:
    """The name of the config that the recording answers."""
    return str(recording.resolved.get("name") or recording.config.get("name") or recording.name)


def asks(recording: Recording) -> str:
    """The first sentence of the config's analysis."""
    words = " ".join(str(recording.resolved.get("analysis", "")).split())
    return re.split(r"(?<=[.?!]) (?=[A-Z])", words)[0]


class Catalogue:
    """Recordings, the newest first, and their results. A/B tests have pages, but no rows beside other recordings."""

    def __init__(self, recordings: Iterable[Recording]) -> None:
        self.recordings = sorted(recordings, key=lambda each: (measured(each), each.name), reverse=True)
        self._results: dict[str, dict[Case, list[Result]]] = {}

    def results_of(self, recording: Recording) -> dict[Case, list[Result]]:
        """Every result of a recording by case, found once."""
        if recording.name not in self._results:
            self._results[recording.name] = results_by_case(recording.records)
        return self._results[recording.name]

    @cached_property
    def entries(self) -> list[Entry]:
        """Every result with a verdict or a failure, of the newest recording first, and of unfinished ones last."""
        entries = []
        for recording in (each for each in self.preferred if not each.sides):
            phase = next(iter(headline(recording.records)), "")
            records: dict[tuple[Case, str], list[Record]] = {}
            for record in recording.records:
                records.setdefault((record.case, record.label), []).append(record)
            for case, results in self.results_of(recording).items():
                entries += [
                    Entry(recording, case, result, phase, records[case, result.contender])
                    for result in results
                    if result.verdict or result.failure
                ]
        return entries

    @cached_property
    def by_cell(self) -> dict[str, list[Entry]]:
        """Entries by the name of their cell, the newest first."""
        return _grouped(self.entries, lambda entry: entry.name)

    @cached_property
    def by_library(self) -> dict[str, list[Entry]]:
        """Entries by library, in the order of their names."""
        return dict(sorted(_grouped(self.entries, lambda entry: entry.library).items()))

    @cached_property
    def by_question(self) -> dict[str, list[Recording]]:
        """Recordings by the config that they answer, in the order of their newest recording."""
        groups: dict[str, list[Recording]] = {}
        for recording in self.recordings:
            groups.setdefault(question(recording), []).append(recording)
        return groups

    @cached_property
    def alike(self) -> list[list[Recording]]:
        """The recordings of each question on each model of machine, the newest first, without A/B tests."""
        groups: dict[tuple[str, str], list[Recording]] = {}
        for recording in (each for each in self.recordings if not each.sides):
            groups.setdefault((question(recording), model(recording)), []).append(recording)
        return list(groups.values())

    @property
    def proved(self) -> int:
        """The number of cells that were proved to be the same work."""
        return len({entry.name for entry in self.entries if entry.result.verdict in SAME})

    @property
    def preferred(self) -> list[Recording]:
        """The newest first, and unfinished ones, which show a part of the work, last."""
        return sorted(self.recordings, key=lambda each: each.unfinished)

    @cached_property
    def latest(self) -> list[Recording]:
        """The newest recording of each question on each model of machine; an unfinished one if there is no other.

        A/B tests are left out: each answers a question of its own.
        """
        newest: dict[tuple[str, str], Recording] = {}
        for recording in (each for each in self.preferred if not each.sides):
            newest.setdefault((question(recording), model(recording)), recording)
        return list(newest.values())


def _grouped(entries: Iterable[Entry], key: Callable[[Entry], str]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return groups


def load(folder: Path, say: Callable[[str], None] = lambda line: None) -> Catalogue:
    """The catalogue of all recordings in a folder; `say` gets a line on each that is left out. Raises NoRecordings."""
    recordings = lookup.readable(lookup.inside(folder), say)
    if not recordings:
        raise NoRecordings(f"{folder}: no recording in this folder; name the folder that holds recordings, as results/")
    return Catalogue(recordings)


def narrowed(recording: Recording, records: list[Record]) -> Recording:
    """The recording with some of its records."""
    return replace(recording, records=records)
