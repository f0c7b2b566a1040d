"""The doctor's diagnoses in a terminal: problems with the next step, then warnings, then all that is well."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from snnbench.machine.diagnosis import Diagnosis
from snnbench.report.terminal.drawing import marked, paragraph

WORDS = {"spoils": "problem", "unknown": "warning", "well": "ok"}
"""State of a diagnosis -> its word; the most urgent first."""


def show(console: Console, diagnoses: Sequence[Diagnosis]) -> None:
    """Print a line for each diagnosis, and below a problem or a warning the next step."""
    indent = len("problem") + 4
    for state, word in WORDS.items():
        for diagnosis in (diagnosis for diagnosis in diagnoses if diagnosis.state == state):
            head = marked(word, console)
            head.pad_right(indent - head.cell_len)
            _hanging(console, head, Text.assemble((f"{diagnosis.name}: ", "bold"), diagnosis.what))
            if diagnosis.step:
                paragraph(console, f"-> {diagnosis.step}", indent=indent)
    console.print()
    console.print(Text(counts(diagnoses), style="bold"))


def counts(diagnoses: Sequence[Diagnosis]) -> str:
    """The number of diagnoses of each state."""
    numbers = {word: sum(diagnosis.state == state for diagnosis in diagnoses) for state, word in WORDS.items()}
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
