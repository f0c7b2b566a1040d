"""`snnbench rank`: it ranks the contenders of one recording."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from snnbench.cli.options import (
    AlphaOption,
    ComparedPhase,
    OutputOption,
    TableFormat,
    TimeFloorOption,
    emit,
    listed,
    require_writable,
    say_gaps,
    thresholds_of,
)
from snnbench.cli.screen import show


def rank(
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="A recording's folder.")],
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline", metavar="LIBRARY", help="The contender to divide by; the config's baseline if left out."
        ),
    ] = "",
    phase: Annotated[
        list[ComparedPhase] | None,
        typer.Option("--phase", help="Only this phase; may be repeated. If left out: train, or all with --format."),
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", metavar="METRIC", help="Rank by the time of a pass, or by energy.")
    ] = "time",
    allow: Annotated[
        str, typer.Option("--allow", metavar="FACTS", help="contended: also rank times that others disturbed.")
    ] = "",
    time_floor: TimeFloorOption = 0.05,
    alpha: AlphaOption = 0.05,
    form: Annotated[TableFormat, typer.Option("--format", help="How to print it.")] = TableFormat.table,
    output: OutputOption = None,
) -> None:
    """Order the libraries of a recording, case by case, and say which are slower or faster than a baseline."""
    from snnbench.analysis import rank as ranks
    from snnbench.analysis.comparisons import CONTENDED
    from snnbench.analysis.results import headline
    from snnbench.recording import reading
    from snnbench.report.text import rank_table
    from snnbench.report.wording import missing
    from snnbench.suggestions import unknown

    if metric not in rank_table.METRICS:
        raise typer.BadParameter(unknown("metric", metric, list(rank_table.METRICS)), param_hint="--metric")
    thresholds = thresholds_of(time_floor=time_floor, alpha=alpha)
    allowed = listed(allow, [CONTENDED], "--allow")
    require_writable(output)
    recorded = reading.read(recording)
    if form is TableFormat.csv:
        say_gaps([recorded])
    if recorded.sides:
        command = shlex.join(["snnbench", "compare", str(recording)])
        raise typer.BadParameter(f"{recording}: holds the two sides of an A/B test; {command}")
    phases = phase or (headline(recorded.records) if form is TableFormat.table else [])
    ranking = ranks.rank(recorded, baseline, thresholds, phases, allowed, metric)
    ranking = replace(ranking, lacking=missing(recorded))
    if metric != "time" and not any(one.entries for one in ranking.rankings):
        raise typer.BadParameter(f"{recording}: holds no {metric}; set protocol.{metric} = true in a config and run it")
    if write := rank_table.FORMATS.get(form):
        emit(write(ranking), output)
    else:
        show(lambda _: rank_table.report(ranking), form, output)
