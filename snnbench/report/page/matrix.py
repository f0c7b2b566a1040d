"""The equivalence matrix: the verdict on each contender in each setting, as a sign and a word."""

from collections import Counter
from collections.abc import Iterable

from snnbench.analysis.results import reasons
from snnbench.cases.case import Case
from snnbench.cases.outcome import SKIPS, VERDICTS
from snnbench.recording.record import Record
from snnbench.report import wording
from snnbench.report.findings import Findings
from snnbench.report.numbers import listed
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


def section(findings: Findings) -> Section:
    """A row per contender, a column per setting; the extent of checks, reasons, and distances of deviating neurons."""
    title = "Who does the same work"
    if not findings.results:
        return Section("matrix", title, ["Left out: the recording holds no cell."])
    names = {one: findings.name(one) for one in findings.settings}
    cells: dict[str, dict[str, list[Record]]] = {}
    for record in findings.recording.records:
        at = cells.setdefault(record.label, {})
        at.setdefault(names[setting(record.case)], []).append(record)
    columns = list(dict.fromkeys(names.values()))
    rows = [[one, *(_cell(by_name.get(name, [])) for name in columns)] for one, by_name in sorted(cells.items())]
    tables = [Table(["library", *columns], rows, texts=len(columns) + 1)]
    return Section(
        "matrix",
        title,
        ["Times are compared within a column only: another reset or another device is another question."],
        remarks=[*_checked(findings), *_reasons(findings)],
        tables=[*tables, *_distances(findings)],
        folded=[("What the words mean", "\n".join(f"{word}: {meaning}" for word, meaning in MEANINGS.items()))],
    )


def _checked(findings: Findings) -> list[str]:
    """The extent of the comparison with the reference: once for all work, or by cases and contenders.

    Cases of a setting with the same extents are named together. A recording without extents gives no remark.
    """
    remarks: list[str] = []
    different: set[str] = set()
    for cases in findings.settings.values():
        alike: dict[tuple[tuple[str, str], ...], list[Case]] = {}
        for case in cases:
            by_extent = recording_tables.extents(findings.results[case])
            named = {extent: f" ({listed(names)})" * (len(by_extent) > 1) for extent, names in by_extent.items()}
            alike.setdefault(tuple(named.items()), []).append(case)
            different |= by_extent.keys()
        for extents, some in alike.items():
            sizes = listed([wording.varying_sizes(case, cases) for case in some])
            where = findings.name(some[0]) + (f", {sizes}" if len(alike) > 1 else "")
            remarks += [f"Checked in {where}: {extent}{names}." for extent, names in extents]
    return remarks if len(different) > 1 else [f"Checked: {extent}." for extent in different]


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


def _reasons(findings: Findings) -> list[str]:
    """Each reason once: why a contender takes no part, or how it deviates. Failures have a section of their own."""
    remarks: dict[str, list[str]] = {}
    for case, results in findings.results.items():
        for contender, reason in reasons(results):
            if not reason.startswith("failed"):
                where = remarks.setdefault(f"{contender}: {reason}", [])
                where += [findings.name(case)] if findings.name(case) not in where else []
    every = len({findings.name(case) for case in findings.cases})
    return [remark if len(where) == every else f"{remark} ({listed(where)})" for remark, where in remarks.items()]


def _distances(findings: Findings) -> list[Table]:
    """A table per setting, for its first case with any: distances of deviating answers from the case's own neuron."""
    distances = []
    for cases in findings.settings.values():
        measured = ((case, recording_tables.distances(findings.results[case])) for case in cases)
        for case, rows in list((case, rows) for case, rows in measured if rows)[:1]:
            caption = f"How far from this neuron those are that deviate: {findings.label(case)}"
            distances.append(Table(recording_tables.DISTANCES, rows, texts=2, caption=caption))
    return distances
