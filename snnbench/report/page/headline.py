"""The headline section of the page: the answer for each setting and size, and the outcomes of cells."""

from snnbench.report import answer
from snnbench.report.findings import Findings
from snnbench.report.numbers import counted
from snnbench.report.section import Section

MAX_ANSWERS = 40


def section(findings: Findings) -> Section:
    """Coverage, and for each setting the fastest at each size."""
    sentences = [f"{answer.coverage(findings.recording.records)}."]
    if findings.recording.torn:
        torn = counted(findings.recording.torn, "line")
        sentences.append(f"{torn} of the recording could not be read: a kill or a full disk tore them.")
    if not findings.headline:
        sentences.append("Nothing was timed: this recording says who does the same work, not how fast.")
        return Section("answer", "In short", sentences)
    answers = answer.answers(findings)
    left = len(answers) - MAX_ANSWERS
    closing = [f"{left} more are in the tables below."] if left > 0 else []
    return Section(
        "answer", "In short", [*sentences, answer.trials(findings)], answers=answers[:MAX_ANSWERS], closing=closing
    )
