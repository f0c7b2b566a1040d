"""The operations of cases in a terminal: two tables, and the reasons for missing numbers."""

from rich.console import Console

from snnbench.report.terminal.drawing import draw, note, paragraph
from snnbench.report.text.operations_table import LEGEND, Works, common_and_tables, reasons


def show(console: Console, works: Works) -> None:
    """Print the tables of all works."""
    common, tables = common_and_tables(works)
    note(console, f"all cases: {common}")
    draw(console, tables, LEGEND)
    for reason in reasons(works):
        paragraph(console, reason, indent=2)
