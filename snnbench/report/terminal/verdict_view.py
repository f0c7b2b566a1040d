"""The result of verification in a terminal: a matrix of libraries and profiles, and the reasons below it."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from snnbench.cases.case import PROFILES
from snnbench.recording.record import Record
from snnbench.report.section import Table
from snnbench.report.terminal.drawing import draw, note, paragraph
from snnbench.report.text.verdict_table import first_wrong, remark, subject

WORST_FIRST = ("deviates", "equivalent", "exact")
"""Verdicts; a kind of failure or skip is worse than all of them."""
LEGEND = (
    "exact: spikes and gradients are the reference's; equivalent: within what its number format allows",
    "deviates: by a difference that it declares; a number counts cases if those of a profile differ",
)


def show(console: Console, records: Sequence[Record]) -> None:
    """Print the verdict of each contender in each profile, and why a contender was not proved to do the work."""
    profiles = sorted({record.case.profile for record in records}, key=list(PROFILES).index)
    versions = {record.label: record.version for record in records if record.version}
    rows = []
    for label in sorted({record.label for record in records}):
        of_label = [record for record in records if record.label == label]
        verdicts = [_word([one for one in of_label if one.case.profile == profile]) for profile in profiles]
        rows.append([label, versions.get(label, ""), *verdicts])
    columns = ("library", "version", *profiles)
    draw(console, [("", Table(columns, rows, texts=len(columns), leaving=("version",)))], LEGEND)
    remarks = dict.fromkeys((subject(record), text) for record in records if (text := remark(record)))
    if remarks:
        console.print()
    for whom, text in sorted(remarks):
        paragraph(console, Text.assemble((f"{whom}: ", "bold"), text), indent=2)
    if wrong := first_wrong(records):
        draw(console, wrong)
    console.print()
    note(console, _summary(records))


def _word(records: Iterable[Record]) -> str:
    """The worst result of some cases, and the counts of others if they differ."""
    counts = Counter(str(record.outcome.verdict or record.outcome.kind) for record in records)
    words = sorted(counts, key=lambda word: WORST_FIRST.index(word) if word in WORST_FIRST else -1)
    if len(words) < 2:
        return words[0] if words else "-"
    return ", ".join(f"{word} {counts[word]}" for word in words)


def _summary(records: Sequence[Record]) -> str:
    counts = Counter(str(record.outcome.verdict or record.outcome.kind) for record in records)
    return f"{len(records)} cases: {', '.join(f'{count} {word}' for word, count in counts.most_common())}"
