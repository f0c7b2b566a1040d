"""`snnbench run`: from a config file to a recording and its table."""

import shlex
import sys
from contextlib import nullcontext, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnbench.cli.groups import Running, grouped, require_finished
from snnbench.cli.options import ConfigOption, config_path, default_threads
from snnbench.cli.screen import show, terminal
from snnbench.exits import Exit
from snnbench.files import replace_file

if TYPE_CHECKING:
    from rich.console import Console

    from snnbench.recording.reading import Recording
    from snnbench.run.request import RunRequest


@grouped
def run(
    config: ConfigOption = "quick",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Predict the memory and the time of the cells, and run none.")
    ] = False,
    retry: Annotated[
        str | None,
        typer.Option("--retry", metavar="KIND,...", help="Run cells with these outcomes again, such as timeout,crash."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress, and print nothing but the recording's folder.")
    ] = False,
    open_page: Annotated[bool, typer.Option("--open", help="At the end, open the recording's page.")] = False,
    *,
    options: Running,
) -> None:
    """Verify and time the cells of a config, and print the answer and its tables.

    Every cell is recorded as it ends. After an interruption of any kind the same command runs the missing cells.
    """
    from snnbench.plan import config as configs

    options.check()
    loaded = configs.load(config_path(config), options.changes, default_threads(options.executor), options.axes)
    request = options.request(config=loaded, retry=_kinds(retry))
    if dry_run:
        _forecast(request)
        return

    with redirect_stderr(StringIO()) if quiet else nullcontext():
        recording, unfinished = options.run(request)
    if quiet:
        typer.echo(recording.folder)
    elif console := terminal():
        _show(console, recording)
    else:
        _print(recording)
    require_finished(unfinished)
    if open_page:
        _open(recording)
    if any(each.status == "failed" or each.outcome.kind == "unprovable" for each in recording.records):
        raise typer.Exit(Exit.FAILED_CELLS)


def _forecast(request: "RunRequest") -> None:
    """Print what the recordings in results/ tell about the cells of a request."""
    import psutil

    from snnbench.adapter.discovery import discover
    from snnbench.machine import description, gpus
    from snnbench.recording import lookup
    from snnbench.recording.record import RecordingError
    from snnbench.report.text import forecast_table
    from snnbench.run.forecast import Limits, forecast
    from snnbench.run.local import RESULTS
    from snnbench.run.progress import say

    adapters, facts = discover(request.adapter_files), description.facts()
    works, protocol = request.of_shard(request.selected(adapters)), request.config.protocol
    limits = Limits.of(protocol, facts, psutil.virtual_memory().available, gpus.has_cuda())
    try:
        recordings = lookup.readable(lookup.folders(RESULTS), say) if RESULTS.is_dir() else []
    except RecordingError as error:  # results/ has no recording, or its only recording is malformed
        say(f"left out: {error}")
        recordings = []
    forecasts = forecast(works, protocol, adapters, recordings, str(facts["model"]), limits)
    show(lambda _: forecast_table.report(forecasts))


def _show(console: "Console", recording: "Recording") -> None:
    """The answer and the tables for a person, and the commands that show more."""
    from rich.text import Text

    from snnbench.report.terminal import drawing
    from snnbench.report.terminal.drawing import paragraph
    from snnbench.report.text import recording_tables

    console.print()
    drawing.show(console, recording_tables.report(recording))
    folder = recording.folder
    console.print()
    paragraph(console, f"recorded in {folder}")
    for what, command in (
        ("who is faster, by a test:", f"snnbench rank {shlex.quote(str(folder))}"),
        ("charts, memory, scaling:", f"snnbench report {shlex.quote(str(folder))} --format html -o page.html"),
    ):
        paragraph(console, Text.assemble((f"{what:<26}", "dim"), command))


def _print(recording: "Recording") -> None:
    """The tables in Markdown for a program."""
    from snnbench.recording import reading
    from snnbench.report.answer import coverage
    from snnbench.report.text import recording_tables
    from snnbench.report.text.markdown import markdown
    from snnbench.run.progress import say

    typer.echo(markdown(recording_tables.report(recording)), nl=False)
    say(f"{coverage(recording)}; recorded in {recording.folder} ({', '.join(reading.FILES)})")


def _open(recording: "Recording") -> None:
    """Write the page beside the recording's files, and open it."""
    from snnbench.report.page import page

    path = Path(recording.folder, "page.html").resolve()
    replace_file(path, page.html([recording]).encode())
    opened = typer.launch(path.as_uri()) == 0
    print(f"{path}: {'opened' if opened else 'written; no browser could be started here'}", file=sys.stderr)


def _kinds(text: str | None) -> tuple[str, ...]:
    """The kinds of outcome in `--retry`. Raises BadParameter."""
    from snnbench.cases.outcome import FAILURES, SKIPS
    from snnbench.suggestions import unknown

    kinds = tuple(kind.strip() for kind in text.split(",")) if text is not None else ()
    for kind in kinds:
        if kind not in {**FAILURES, **SKIPS}:
            raise typer.BadParameter(unknown("kind", kind, [*FAILURES, *SKIPS]), param_hint="--retry")
    return kinds
