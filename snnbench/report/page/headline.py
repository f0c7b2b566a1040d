"""The headline section of the page: the answer for each setting and size, and the outcomes of cells."""

from snnbench.report import answer, wording
from snnbench.report.findings import Findings
from snnbench.report.section import Section

MAX_ANSWERS = 40


def section(findings: Findings) -> Section:
    """For each setting the leaders at each size; then the coverage and the trials that this rests on."""
    about = [f"{answer.coverage(findings.recording)}."]
    if remarks := wording.remarks(findings.recording):
        about.append(f"{remarks}.")
    if not findings.headline:
        return Section("answer", "In short", [answer.UNTIMED], closing=about)
    answers = answer.answers(findings)
    left = len(answers) - MAX_ANSWERS
    more = [f"{left} more are in the tables below."] if left > 0 else []
    closing = [*more, *about, answer.trials(findings)]
    return Section("answer", "In short", answers=answers[:MAX_ANSWERS], closing=closing)
