"""The equivalence matrix: the verdicts on each library in each setting, as signs and words."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

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
    "unsupported": "\u2212",
    "unavailable": "\u2212",
    "unprovable": "?",
    "failed": "!",
}
"""Signs beside the words, so that a reader can scan a column."""
MEANINGS = VERDICTS | SKIPS
SIGNS_IN_ORDER = list(SIGNS.values())


def section(overview: Overview) -> Section:
    """A row per library, a column per setting; the extent of checks, reasons, and distances of deviating neurons."""
    title = "Who does the same work"
    if not overview.results:
        return Section("matrix", title, ["Left out: the recording holds no cell."])
    names = {one: overview.name(one) for one in overview.settings}
    columns = list(dict.fromkeys(names.values()))
    by_library: dict[str, dict[str, dict[str, list[Record]]]] = {}
    for record in sorted(overview.recording.records, key=lambda record: record.label):
        cells = by_library.setdefault(record.library, {name: {} for name in columns})
        cells[names[setting(record.case)]].setdefault(record.label, []).append(record)
    rows = [_row(library, cells.values()) for library, cells in by_library.items()]
    tables = [Table(["library", *columns], rows, texts=len(columns) + 1, empty="not asked")]
    return Section(
        "matrix",
        title,
        [
            "Times are compared within a column only: another reset or another device is another question. A verdict "
            "without a name is that of every variant in its row."
        ],
        remarks=[*recording_tables.checked(overview), *recording_tables.reasons_of(overview, failures=False)],
        tables=[*tables, *_distances(overview)],
        folded=[("What the words mean", "\n".join(f"{word}: {meaning}" for word, meaning in MEANINGS.items()))],
    )


def _row(library: str, columns: Collection[Mapping[str, list[Record]]]) -> list[str]:
    """A library with its variants, and its outcomes in each column with the variants that have them, unless all do."""
    labels = sorted({label for by_label in columns for label in by_label})
    names = {label: label.removeprefix(library).removeprefix("/").strip() or label for label in labels}
    row = [f"{library}: {', '.join(names.values())}" if len(labels) > 1 else labels[0]]
    for by_label in columns:
        variants: dict[str, list[str]] = {}
        for label, records in by_label.items():
            variants.setdefault(_outcomes(records), []).append(names[label])
        if any(len(some) == len(labels) for some in variants.values()):
            row += variants
        else:
            ordered = sorted(variants, key=lambda words: SIGNS_IN_ORDER.index(words[0]))
            row.append("; ".join(f"{words}: {', '.join(variants[words])}" for words in ordered))
    return row


def _outcomes(records: Iterable[Record]) -> str:
    """The outcomes of cells, the worst last, with counts if they differ."""
    words = Counter(_word(record) for record in records)
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
            distances.append(
                Table(recording_tables.DISTANCES, rows, texts=2, caption=caption, leaving=recording_tables.LEAVING)
            )
    return distances
