"""The section of failures: kind and reason, the last line of the worker's log, and the command that runs it again."""

import shlex

from snnbench.recording.record import Record
from snnbench.report.findings import Findings
from snnbench.report.numbers import counted
from snnbench.report.section import Section, Table

MAX_ROWS = 200
LINE = 300
"""The most characters of a line that are shown."""
REPEATS = "The command runs the same work again, with what is installed there."
PRINTS = "The command prints the worker's output. A side of an A/B test is not replayed alone."


def section(findings: Findings) -> Section:
    """A row for each contender, kind and reason, with the first of its cells."""
    groups: dict[tuple[str, str, str], list[tuple[str, Record]]] = {}
    for (case, contender), records in findings.failures.items():
        for record in records:
            key = contender, str(record.outcome.kind), str(record.outcome.reason)
            groups.setdefault(key, []).append((findings.label(case), record))
    if not groups:
        return Section("failures", "Failures", ["Nothing failed."])
    rows = []
    for (contender, kind, reason), failed in list(groups.items())[:MAX_ROWS]:
        where, record = failed[0]
        more = f", and {counted(len(failed) - 1, 'cell')} more" if len(failed) > 1 else ""
        way = "--log" if record.side else "--replay"
        command = shlex.join(["snnbench", "show", record.cell, "--in", f"results/{findings.recording.name}", way])
        rows.append([contender, kind, where + more, _short(reason), last_line(record.log) or "-", command])
    left = len(groups) - MAX_ROWS
    return Section(
        "failures",
        "Failures",
        [f"A failed cell has no time anywhere. {PRINTS if findings.recording.sides else REPEATS}"],
        tables=[
            Table(
                ["library", "kind", "where", "reason", "last line of its log", "again"],
                rows,
                texts=6,
                code=frozenset({"last line of its log", "again"}),
            )
        ],
        closing=[f"{left} more kinds of failure are in the recording."] if left > 0 else [],
    )


def last_line(log: str) -> str:
    """The last line of a worker's standard error that is not empty."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return _short(lines[-1]) if lines else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LINE else text[: LINE - 1] + "\u2026"
