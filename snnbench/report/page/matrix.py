"""The equivalence matrix: the verdict on each contender in each setting, as a sign and a word."""

from collections import Counter
from collections.abc import Iterable

from snnbench.cases.outcome import SKIPS, VERDICTS
from snnbench.recording.record import Record
from snnbench.report.overview import Overview
from snnbench.report.section import Section, Table
from snnbench.report.text import recording_tables
from snnbench.report.wording import setting

SIGNS = {
    "exact": "\u2713",
    "equivalent": "\u2248",
    "deviates": "\u2260",
    "incorrect": "\u2717",
    "unsupported": "\u2013",
    "unavailable": "\u2013",
    "unprovable": "?",
    "failed": "!",
}
"""Signs beside the words, so that a reader can scan a column."""
MEANINGS = VERDICTS | SKIPS


def section(overview: Overview) -> Section:
    """A row per contender, a column per setting; the extent of checks, reasons, and distances of deviating neurons."""
    title = "Who does the same work"
    if not overview.results:
        return Section("matrix", title, ["Left out: the recording holds no cell."])
    names = {one: overview.name(one) for one in overview.settings}
    cells: dict[str, dict[str, list[Record]]] = {}
    for record in overview.recording.records:
        at = cells.setdefault(record.label, {})
        at.setdefault(names[setting(record.case)], []).append(record)
    columns = list(dict.fromkeys(names.values()))
    rows = [[one, *(_cell(by_name.get(name, [])) for name in columns)] for one, by_name in sorted(cells.items())]
    tables = [Table(["library", *columns], rows, texts=len(columns) + 1)]
    return Section(
        "matrix",
        title,
        ["Times are compared within a column only: another reset or another device is another question."],
        remarks=[*recording_tables.checked(overview), *recording_tables.reasons_of(overview, failures=False)],
        tables=[*tables, *_distances(overview)],
        folded=[("What the words mean", "\n".join(f"{word}: {meaning}" for word, meaning in MEANINGS.items()))],
    )


def _cell(records: Iterable[Record]) -> str:
    """The outcomes of cells, the worst last, with counts if they differ."""
    words = Counter(_word(record) for record in records)
    if not words:
        return "not asked"
    ordered = sorted(words, key=lambda word: list(SIGNS).index(word.split()[0]))
    counts = {word: f"{words[word]} " if len(words) > 1 else "" for word in ordered}
    listed = [f"{SIGNS[word.split()[0]]} {counts[word]}{word}" for word in ordered]
    return ", ".join(one.replace(" ", "\u00a0") for one in listed)


def _word(record: Record) -> str:
    if record.status == "measured":
        return str(record.outcome.verdict)
    kind = str(record.outcome.kind)
    return kind if kind in SIGNS else f"failed ({kind})"


def _distances(overview: Overview) -> list[Table]:
    """A table per setting, for its first case with any: distances of deviating answers from the case's own neuron."""
    distances = []
    for cases in overview.settings.values():
        measured = ((case, recording_tables.distances(overview.results[case])) for case in cases)
        for case, rows in list((case, rows) for case, rows in measured if rows)[:1]:
            caption = f"How far from this neuron those are that deviate: {overview.label(case)}"
            distances.append(Table(recording_tables.DISTANCES, rows, texts=2, caption=caption))
    return distances
