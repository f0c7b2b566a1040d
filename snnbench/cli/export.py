"""`snnbench export`: it writes the times of a recording in the formats of tools that keep histories."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from snnbench.cli.options import OutputOption, emit, require_writable, say_gaps


class ExportFormat(StrEnum):
    """Bencher Metric Format, github-action-benchmark's custom format, a suite of pyperf, a results file of asv."""

    bmf = "bmf"
    github_action_benchmark = "github-action-benchmark"
    pyperf = "pyperf"
    asv = "asv"


def export(
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="A folder under results/.")],
    to: Annotated[ExportFormat, typer.Option("--to", help="The format.", show_default=False)],
    commit: Annotated[
        str | None, typer.Option("--commit", metavar="HASH", help="The commit of the library; asv files times by it.")
    ] = None,
    output: OutputOption = None,
) -> None:
    """Write times and peaks for a tool that keeps a history. Only contenders that do the same work have a number.

    snnbench export results/RECORDING --to bmf -o bmf.json
    """
    from snnbench.recording import reading
    from snnbench.report import exports

    if (to is ExportFormat.asv) != (commit is not None):
        raise typer.BadParameter("asv needs the commit, and no other format takes it", param_hint="--commit")
    if commit is not None and not commit.strip():
        raise typer.BadParameter("expected the hash of a commit", param_hint="--commit")
    require_writable(output)
    loaded = reading.read(recording)
    say_gaps([loaded])
    emit(exports.asv(loaded, commit) if commit else exports.FORMATS[to](loaded), output)
