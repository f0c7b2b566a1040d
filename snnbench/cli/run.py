"""`snnbench run`: from a config file to a recording and its table."""

from typing import Annotated

import typer

from snnbench.cli.options import (
    AdapterOption,
    ConfigOption,
    DevicesOption,
    EnvOption,
    ExecutorOption,
    FreshOption,
    OnlyOption,
    RecordingOption,
    SetOption,
    ShardOption,
    ShardsOption,
    SlurmOption,
    Unfinished,
    Where,
    config_path,
    default_threads,
    require_one_way,
)
from snnbench.environments import Env
from snnbench.exits import Exit


def run(
    config: ConfigOption,
    only: OnlyOption = None,
    settings: SetOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cells and run none.")] = False,
    output: RecordingOption = None,
    devices: DevicesOption = None,
    shard: ShardOption = None,
    retry: Annotated[
        str | None,
        typer.Option("--retry", metavar="KIND,...", help="Run cells with these outcomes again, such as timeout,crash."),
    ] = None,
    fresh: FreshOption = False,
    executor: ExecutorOption = Where.local,
    shards: ShardsOption = None,
    slurm: SlurmOption = None,
    env: EnvOption = Env.managed,
    adapter: AdapterOption = None,
) -> None:
    """Verify and time the cells of a config, and print the table.

    Every cell is recorded as it ends. After an interruption of any kind the same command runs the missing cells.
    """
    from snnbench.adapter.discovery import discover
    from snnbench.plan import config as configs
    from snnbench.plan.cell import cells
    from snnbench.plan.shard import parse
    from snnbench.recording import record
    from snnbench.report.text.recording_tables import coverage, markdown
    from snnbench.run import local
    from snnbench.run.progress import describe, say
    from snnbench.run.request import Request

    require_one_way(executor, shard=shard, devices=devices, shards=shards, slurm=slurm)
    request = Request(
        config=configs.load(config_path(config), settings or [], default_threads(executor)),
        adapter_files=tuple(adapter or []),
        only=tuple(only or []),
        env=env,
        output=output,
        shard=parse(shard) if shard else None,
        retry=_kinds(retry),
        fresh=fresh,
        devices=devices,
    )
    if dry_run:
        works = request.of_shard(request.selected(discover(request.adapter_files)))
        plan = cells(works, request.config.protocol)
        typer.echo("\n".join(describe(cell) for cell in plan))
        say(f"{len(plan)} cells, {len(works)} of them different work")
        return

    unfinished: list[str] = []
    if executor is Where.slurm:
        from snnbench.run.slurm.scheduler import options
        from snnbench.run.slurm.submit import run_jobs

        recording, unfinished = run_jobs(request, shards, options(slurm or []))
    else:
        recording = local.run(request)
    typer.echo(markdown([recording]), nl=False)
    say(f"{coverage(recording.records)}; recorded in {recording.folder} ({', '.join(record.FILES)})")
    if unfinished:
        raise Unfinished("\n".join([*unfinished, "not finished; the same command runs the missing cells"]))
    if any(each.status == "failed" for each in recording.records):
        raise typer.Exit(Exit.FAILED_CELLS)


def _kinds(text: str | None) -> tuple[str, ...]:
    """The kinds of outcome in `--retry`. Raises BadParameter."""
    from snnbench.suggestions import unknown
    from snnbench.workloads.outcome import FAILURES, SKIPS

    kinds = tuple(kind.strip() for kind in text.split(",")) if text is not None else ()
    for kind in kinds:
        if kind not in {**FAILURES, **SKIPS}:
            raise typer.BadParameter(unknown("kind", kind, [*FAILURES, *SKIPS]), param_hint="--retry")
    return kinds
