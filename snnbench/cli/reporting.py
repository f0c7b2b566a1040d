"""`snnbench report`: tables of recordings."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from snnbench.cli.options import RecordingsArgument


class Format(StrEnum):
    """Markdown tables to read, or tidy CSV to compute with."""

    markdown = "markdown"
    csv = "csv"


def report(
    recordings: RecordingsArgument,
    form: Annotated[Format, typer.Option("--format", help="Tables to read, or tidy CSV.")] = Format.markdown,
    splice: Annotated[
        Path | None,
        typer.Option("--splice", metavar="FILE", help="Put the tables between the marks in a Markdown file instead."),
    ] = None,
    mark: Annotated[
        str, typer.Option("--mark", metavar="NAME", help="Which marks, in a file with several: report NAME: start.")
    ] = "",
) -> None:
    """Print recordings as Markdown tables or as tidy CSV, one row for each trial, phase and metric."""
    from snnbench import record, splicing, tidy
    from snnbench import report as reports

    found = [record.read(folder) for folder in recordings]
    if splice:
        splicing.splice(splice, reports.markdown(found, heading="###"), mark)
        typer.echo(f"{splice}: tables replaced", err=True)
    elif form is Format.csv:
        typer.echo(tidy.to_csv(tidy.rows(found)), nl=False)
    else:
        typer.echo(reports.markdown(found), nl=False)
