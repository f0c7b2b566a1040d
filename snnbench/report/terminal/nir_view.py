"""The conformance of importers in a terminal: a table, and below it the causes and reasons in full."""

from rich.console import Console
from rich.text import Text

from snnbench.recording.conformance import Conformance
from snnbench.report.terminal.drawing import draw, note, paragraph
from snnbench.report.text.nir_table import LEGEND, explanations, rows_of, title


def show(console: Console, conformance: Conformance) -> None:
    """Print a row for each graph, time step and library, and the causes of differences."""
    draw(console, [(title(conformance), rows_of(conformance.rows))], LEGEND)
    console.print()
    for who, words in explanations(conformance.rows):
        paragraph(console, Text.assemble((f"{who}: ", "bold"), words), indent=2)
    verdicts = [row.verdict for row in conformance.rows]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))
    note(console, f"{len(verdicts)} rows: {counts}")
