"""`snnbench run`: from a config file to a recording and its table."""

import re
import shlex
import sys
from contextlib import nullcontext, redirect_stderr
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snnbench.cli.groups import Running, grouped, require_finished
from snnbench.cli.options import ConfigOption, Where
from snnbench.cli.screen import show, terminal
from snnbench.exits import Exit
from snnbench.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from snnbench.adapter.declaration import Adapter
    from snnbench.plan.config import Config
    from snnbench.recording.reading import Recording
    from snnbench.run.request import RunRequest


class Until(StrEnum):
    """When a run has enough trials."""

    all = "all"
    certain = "certain"


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
    until: Annotated[
        Until | None,
        typer.Option("--until", help="certain: measure until the leader is certain. all: all trials of everyone."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials", min=1, max=10_000, help="Trials of each contender or, until the leader is certain, the most."
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="TIME", help="Begin no cell that may end later, such as 60s or 10m."),
    ] = None,
    *,
    options: Running,
) -> None:
    """Verify and time the cells of a config, and print the answer and its tables.

    Every cell is recorded as it ends. After an interruption of any kind the same command runs the missing cells.
    """
    from snnbench.run import local

    options.check()
    loaded = _limited(options.config(config, "quick", options.executor), until, trials, options)
    request = options.request(config=loaded, retry=_kinds(retry), budget_s=seconds(budget) if budget else None)
    if dry_run:
        _forecast(request)
        return

    with redirect_stderr(StringIO()) if quiet else nullcontext():
        options.announce()
        if options.executor is Where.slurm:
            recording, unfinished = options.submit(request)
        else:
            recording, unfinished = local.run(request), []
    if quiet:
        typer.echo(recording.folder)
    elif console := terminal():
        _show(console, recording, request)
    else:
        _print(recording)
    require_finished(unfinished)
    if open_page:
        _open(recording)
    if any(each.status == "failed" or each.outcome.kind == "unprovable" for each in recording.records):
        raise typer.Exit(Exit.FAILED_CELLS)


def _limited(config: "Config", until: Until | None, trials: int | None, options: Running) -> "Config":
    """The config with these trials. A part of a run has all trials, because nobody sees the other parts."""
    from snnbench.analysis.race import LOOKS
    from snnbench.run.progress import say

    changes: dict[str, Any] = {} if trials is None else {"trials": trials, "until": until or Until.all}
    if until is not None:
        changes |= {"until": until, "remeasure": 0} if until is Until.certain else {"until": until}
        changes |= {"trials": LOOKS[-1]} if until is Until.certain and trials is None else {}
    config = config.with_protocol(**changes)
    if config.protocol.is_race and (options.part is not None or options.executor is not Where.local):
        say(f"all {config.protocol.trials} trials of every contender are measured: a race needs a run in one place")
        config = config.with_protocol(until="all")
    return config


def seconds(text: str) -> float:
    """The seconds in a text such as 90, 60s, 10m or 2h. Raises BadParameter."""
    written = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|h)?", text.strip())
    if not written or not float(written[1]):
        raise typer.BadParameter(f"{text!r} is no time such as 60s, 10m or 2h", param_hint="--budget")
    return float(written[1]) * {"s": 1, "m": 60, "h": 3600}[written[2] or "s"]


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
    most = protocol.trials if protocol.is_race else 0
    show(lambda _: forecast_table.report(forecasts, most, request.budget_s))


def _show(console: "Console", recording: "Recording", request: "RunRequest") -> None:
    """The answer and the tables for a person, what the leaders are, and the commands that show more."""
    from rich.text import Text

    from snnbench.adapter.discovery import discover
    from snnbench.report import answer
    from snnbench.report.overview import find
    from snnbench.report.terminal import drawing
    from snnbench.report.terminal.drawing import paragraph
    from snnbench.report.text import recording_tables

    console.print()
    drawing.show(console, recording_tables.report(recording))
    folder = recording.folder
    console.print()
    paragraph(console, f"recorded in {folder}")
    where = shlex.quote(str(folder))
    steps = [
        ("who is faster, by a test:", f"snnbench rank {where}"),
        ("charts, memory, scaling:", f"snnbench report {where} --format html -o page.html"),
    ]
    ahead = answer.ahead(find(recording))
    adapters = discover(request.adapter_files)
    for library in dict.fromkeys(name.partition("/")[0] for name in ahead):
        paragraph(console, Text.assemble((f"{library}: ", "dim"), adapters[library].about))
    if ahead and _has_code(recording, ahead[0], adapters):
        steps.insert(0, (f"the code of {ahead[0].partition('/')[0]}:", f"snnbench show {ahead[0]} --code --in {where}"))
    for what, command in steps:
        paragraph(console, Text.assemble((f"{what:<26} ", "dim"), command))


def _has_code(recording: "Recording", contender: str, adapters: "Mapping[str, Adapter]") -> bool:
    """Whether `snnbench show CONTENDER --code` prints code: it does so for the contender's last cell."""
    from snnbench.code import NoCode, script

    *_, last = (record for record in recording.records if record.label == contender)
    adapter = adapters[last.library]
    try:
        script(adapter, adapter.variants[last.variant], last.case)
    except NoCode:
        return False
    return True


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
