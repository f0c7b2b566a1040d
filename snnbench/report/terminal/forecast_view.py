"""The forecast of a config in a terminal: one table for each case, then all that does not fit, and the whole time."""

from rich.console import Console

from snnbench.report.terminal.drawing import draw, note, paragraph
from snnbench.report.text import forecast_table
from snnbench.run.forecast import Plan


def show(console: Console, plan: Plan) -> None:
    """Print the forecast of every contender in every case."""
    first, *others = forecast_table.opening(plan)
    paragraph(console, first, style="bold")
    common, tables = forecast_table.cases(plan)
    for line in (*others, f"all cases: {common}"):
        note(console, line)
    draw(console, tables, forecast_table.LEGEND)
    console.print()
    for line in forecast_table.too_much(plan):
        paragraph(console, line)
    paragraph(console, forecast_table.summary(plan), style="bold")
