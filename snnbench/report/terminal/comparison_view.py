"""A comparison in a terminal: the changes first, the other cells as far as there is room, their counts at the end."""

from collections import Counter
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from snnbench.analysis.compare import Comparison
from snnbench.report.terminal.drawing import draw, note, paragraph
from snnbench.report.text.change_table import changes_of, explanation, opening, summary

UNCHANGED = ("same", "inconclusive")
MAX_ROWS = 20
"""A table of more rows leaves out cells of these words."""
LEGEND = "ratio: NEW over BASE; same: any change is below the limit; inconclusive: these trials cannot tell"


def show(console: Console, comparison: Comparison, explained: bool) -> None:
    """Print the comparison; `explained` adds the grounds of each word."""
    common, changes = changes_of(comparison)
    first, *others = opening(comparison, common)
    paragraph(console, first, style="bold")
    for line in others:
        note(console, line)
    console.print()
    cells = [
        (row, cell)
        for number, (row, cell) in enumerate(zip(changes.rows, comparison.cells, strict=True))
        if number < MAX_ROWS or cell.word not in UNCHANGED
    ]
    if cells:
        draw(console, [("", replace(changes, rows=[row for row, _ in cells]))], [LEGEND])
        console.print()
    for _, cell in cells if explained else ():
        name = " ".join(part for part in (cell.contender, cell.phase, cell.metric) if part)
        paragraph(console, Text.assemble((f"{name}: ", "bold"), explanation(cell)), indent=2)
    hidden = Counter(cell.word for cell in comparison.cells) - Counter(cell.word for _, cell in cells)
    if hidden:
        words = ", ".join(f"{count} {word}" for word, count in hidden.items())
        note(console, f"not listed: {words} (--format markdown lists them)")
    paragraph(console, summary(comparison), style="bold")
    if comparison.ab_command:
        paragraph(console, f"To decide, run both versions in one A/B test: {comparison.ab_command}")
