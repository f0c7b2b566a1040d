"""One cell in a terminal, as a card."""

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.report.terminal.drawing import marked, shows_symbols
from snnbench.report.text import cell_description

WIDEST = 120
"""The most columns of a card."""


def show(console: Console, recording: Recording, record: Record) -> None:
    """Print a frame with everything about the cell but raw durations and the worker's output."""
    first, _, *others = cell_description.lines(recording, record)
    title = Text.assemble((record.label, "bold"), f" {record.version or ''}")
    word = marked(str(record.outcome.verdict or record.outcome.kind), console)
    body = [word.append(f" {record.measure} {record.trial}: {record.outcome}"), Text(first)]
    for line in others:
        name, colon, rest = line.partition(": ")
        body.append(Text.assemble((name, "bold"), colon, rest) if colon else Text(line))
    frame = box.ROUNDED if shows_symbols(console) else box.ASCII
    width = min(console.width, WIDEST)
    console.print(Panel(Text("\n").join(body), title=title, box=frame, width=width, title_align="left"))
