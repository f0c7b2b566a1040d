"""The doctor's findings in a terminal: problems with the next step, then warnings, then all that is well."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from snnbench.machine.finding import Finding
from snnbench.report.terminal.drawing import marked, paragraph

WORDS = {"spoils": "problem", "unknown": "warning", "well": "ok"}
"""State of a finding -> its word; the most urgent first."""


def show(console: Console, findings: Sequence[Finding]) -> None:
    """Print a line for each finding, and below a problem or a warning the next step."""
    indent = len("problem") + 4
    for state, word in WORDS.items():
        for finding in (finding for finding in findings if finding.state == state):
            head = marked(word, console)
            head.pad_right(indent - head.cell_len)
            _hanging(console, head, Text.assemble((f"{finding.name}: ", "bold"), finding.what))
            if finding.step:
                paragraph(console, f"-> {finding.step}", indent=indent)
    console.print()
    console.print(Text(counts(findings), style="bold"))


def counts(findings: Sequence[Finding]) -> str:
    """The number of findings of each state."""
    numbers = {word: sum(finding.state == state for finding in findings) for state, word in WORDS.items()}
    return ", ".join(_counted(count, word) for word, count in numbers.items())


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if word == "ok" else f"{count} {word}{'s' * (count != 1)}"


def _hanging(console: Console, head: Text, text: Text) -> None:
    """Words after a head; their later lines are indented by its width."""
    first, *others = text.wrap(console, console.width - head.cell_len)
    first.rstrip()
    console.print(head.append_text(first), no_wrap=True, overflow="crop")
    for line in others:
        line.rstrip()
        console.print(Text(" " * (head.cell_len - first.cell_len)).append_text(line), no_wrap=True, overflow="crop")
