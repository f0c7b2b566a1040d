"""`snnbench run`: from a config file to a recording and its table."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from snnbench.cli.exits import Exit
from snnbench.cli.options import AdapterOption, ConfigOption, Env, EnvOption, OnlyOption, SetOption, config_path


class Where(StrEnum):
    """Where cells run: on this machine, or as jobs of a cluster."""

    local = "local"
    slurm = "slurm"


class Unfinished(RuntimeError):
    """A run came to its end without all of its cells; the message says why and what to do."""


def run(
    config: ConfigOption,
    only: OnlyOption = None,
    settings: SetOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cells and run none.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The recording's folder; a dated one in results/ if left out."
        ),
    ] = None,
    devices: Annotated[
        str | None,
        typer.Option("--devices", metavar="CARD,...", help="GPUs to use, by number or UUID; all if left out."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard", metavar="I/N", help="Run the I-th of N parts; `snnbench merge` joins their recordings."
        ),
    ] = None,
    retry: Annotated[
        str | None,
        typer.Option("--retry", metavar="KIND,...", help="Run cells again that ended so, such as timeout,crash."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start a new recording, whatever there is.")] = False,
    executor: Annotated[
        Where, typer.Option("--executor", help="local: on this machine; slurm: each shard a job of one array.")
    ] = Where.local,
    shards: Annotated[
        int | None,
        typer.Option("--shards", metavar="N", min=1, help="How many jobs; one for each case, up to 16, if left out."),
    ] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option("--slurm", metavar="KEY=VALUE", help="An option of sbatch: partition=gpu, time=60, exclusive"),
    ] = None,
    env: EnvOption = Env.managed,
    adapter: AdapterOption = None,
) -> None:
    """Verify and time what a config asks for, and print the table.

    Every cell is recorded as it ends. After an interruption of any kind the same command runs what is missing.
    """
    from snnbench import config as configs
    from snnbench import record, report
    from snnbench.cell import cells
    from snnbench.cli.progress import describe, say
    from snnbench.cli.recording import Continuation, record_sweep, selected
    from snnbench.library import discover
    from snnbench.shard import parse

    _require_one_way(executor, shard=shard, devices=devices, shards=shards, slurm=slurm)
    part = parse(shard) if shard else None
    continuation = Continuation(_kinds(retry), fresh)
    loaded = configs.load(config_path(config), settings or [])
    adapters = discover(adapter or [])
    if dry_run:
        works = selected(loaded, adapters, only or [])
        works = part.of(works) if part else works
        plan = cells(works, loaded.protocol)
        typer.echo("\n".join(describe(cell) for cell in plan))
        say(f"{len(plan)} cells, {len(works)} of them different work")
        return

    unfinished: list[str] = []
    if executor is Where.slurm:
        from snnbench.cli.submitting import Asked, run_jobs
        from snnbench.slurm import options

        files, chosen = tuple(adapter or []), options(slurm or [])
        asked = Asked(loaded, files, tuple(only or []), env, output, continuation, shards, chosen)
        recording, unfinished = run_jobs(asked)
    else:
        recording = record_sweep(loaded, adapters, only or [], env, output, part, continuation, devices)
    typer.echo(report.markdown([recording]), nl=False)
    say(f"{report.coverage(recording.records)}; recorded in {recording.folder} ({', '.join(record.FILES)})")
    if unfinished:
        raise Unfinished("\n".join([*unfinished, "not finished; the same command runs what is missing"]))
    if any(found.status == "failed" for found in recording.records):
        raise typer.Exit(Exit.FAILED_CELLS)


def _require_one_way(executor: Where, **given: object) -> None:
    """Refuse options that say nothing where the run goes. Raises BadParameter."""
    idle = ("shard", "devices") if executor is Where.slurm else ("shards", "slurm")
    for name in idle:
        if given[name]:
            why = "Slurm chooses" if executor is Where.slurm else "only with --executor slurm"
            raise typer.BadParameter(f"{why}; leave it out", param_hint=f"--{name}")


def _kinds(text: str | None) -> tuple[str, ...]:
    """The kinds of outcome in `--retry`. Raises BadParameter."""
    from snnbench.nearest import unknown
    from snnbench.outcome import FAILURES, SKIPS

    kinds = tuple(kind.strip() for kind in text.split(",")) if text is not None else ()
    for kind in kinds:
        if kind not in {**FAILURES, **SKIPS}:
            raise typer.BadParameter(unknown("kind", kind, [*FAILURES, *SKIPS]), param_hint="--retry")
    return kinds
