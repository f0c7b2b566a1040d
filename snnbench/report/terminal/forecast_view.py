"""The forecast of a config in a terminal: one table for each case, then all that does not fit, and the whole time."""

from collections.abc import Sequence

from rich.console import Console

from snnbench.report.terminal.drawing import draw, note, paragraph
from snnbench.report.text import forecast_table
from snnbench.run.forecast import Forecast


def show(console: Console, forecasts: Sequence[Forecast]) -> None:
    """Print the forecast of every contender in every case."""
    common, tables = forecast_table.cases(forecasts)
    note(console, f"all cases: {common}")
    draw(console, tables, forecast_table.legend(forecasts))
    console.print()
    for line in forecast_table.too_much(forecasts):
        paragraph(console, line)
    paragraph(console, forecast_table.summary(forecasts), style="bold")
