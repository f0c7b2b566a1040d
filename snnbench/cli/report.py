"""`snnbench report`: it shows recordings as tables, tidy data, a page or figures."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnbench import files
from snnbench.cli.options import OutputOption, RecordingsArgument, named, require_writable, save, say_gaps, writing
from snnbench.cli.screen import terminal

if TYPE_CHECKING:
    from snnbench.recording.reading import Recording


class Format(StrEnum):
    """Markdown tables and an HTML page to read, tidy CSV, JSON and Parquet to compute with."""

    markdown = "markdown"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    html = "html"


def report(
    recordings: RecordingsArgument,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Tables (the default) or a page to read, or tidy data.", show_default=False),
    ] = None,
    output: OutputOption = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures",
            metavar="DIR",
            callback=named,
            help="Write the page's charts as SVG and PDF, and how to cite them.",
        ),
    ] = None,
    splice: Annotated[
        Path | None,
        typer.Option("--splice", metavar="FILE", help="Put the tables between the marks in a Markdown file instead."),
    ] = None,
    mark: Annotated[
        str,
        typer.Option("--mark", metavar="NAME", help="Name of the marks, if the file has several: report NAME: start."),
    ] = "",
) -> None:
    """Show recordings as tables, as tidy data, one row for each trial, phase and metric, or as a page.

    snnbench report results/RECORDING --format html -o page.html
    """
    from snnbench.recording import reading
    from snnbench.report.text import splicing

    require_writable(output, splice)
    if figures:
        with writing(figures):
            files.try_folder(figures)
    loaded = [reading.read(folder) for folder in recordings]
    if figures or form in (Format.csv, Format.json, Format.parquet):
        say_gaps(loaded)
    if splice:
        with writing(splice):
            splicing.splice(splice, _markdown(loaded, level=3), mark)
        typer.echo(f"{splice}: tables replaced", err=True)
    if figures:
        _draw(loaded, figures)
    if not (form or output or splice or figures) and (console := terminal()):
        from snnbench.report.terminal import drawing
        from snnbench.report.text import recording_tables

        for recording in loaded:
            drawing.show(console, recording_tables.report(recording))
    elif form or output or not (splice or figures):
        _write(loaded, form or Format.markdown, output)


def _write(recordings: list["Recording"], form: Format, output: Path | None) -> None:
    from snnbench.report import tidy

    if form is Format.parquet and output is None:
        raise typer.BadParameter("parquet is not text; say where to with -o FILE", param_hint="--format")
    match form:
        case Format.markdown:
            content = _markdown(recordings).encode()
        case Format.csv:
            content = tidy.to_csv(tidy.rows(recordings)).encode()
        case Format.json:
            content = tidy.to_json(tidy.rows(recordings)).encode()
        case Format.parquet:
            content = tidy.to_parquet(tidy.rows(recordings))
        case Format.html:
            from snnbench.report.page import page  # with the libraries of its charts

            content = page.html(recordings).encode()
    if output is None:
        typer.echo(content, nl=False)
        return
    save(content, output)


def _markdown(recordings: list["Recording"], level: int = 2) -> str:
    from snnbench.report.text import recording_tables
    from snnbench.report.text.markdown import markdown

    return "\n".join(markdown(recording_tables.report(recording), level) for recording in recordings)


def _draw(recordings: list["Recording"], folder: Path) -> None:
    from snnbench.report.page import figures

    with writing(folder):
        for path, shown in figures.write(recordings, folder):
            typer.echo(f"{path}: {shown}", err=True)
