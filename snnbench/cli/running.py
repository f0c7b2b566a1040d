"""`snnbench run`: from a config file to a recording and its table."""

from pathlib import Path
from typing import Annotated

import typer

from snnbench.cli.exits import Exit
from snnbench.cli.options import AdapterOption, ConfigOption, Env, EnvOption, OnlyOption, SetOption, config_path


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
    from snnbench.cli.recording import record_sweep, selected
    from snnbench.library import discover

    loaded = configs.load(config_path(config), settings or [])
    adapters = discover(adapter or [])
    if dry_run:
        works = selected(loaded, adapters, only or [])
        plan = cells(works, loaded.protocol)
        typer.echo("\n".join(describe(cell) for cell in plan))
        say(f"{len(plan)} cells, {len(works)} of them different work")
        return

    recording = record_sweep(loaded, adapters, only or [], env, output)
    typer.echo(report.markdown([recording]), nl=False)
    say(f"{report.coverage(recording.records)}; recorded in {recording.folder} ({', '.join(record.FILES)})")
    if any(found.status == "failed" for found in recording.records):
        raise typer.Exit(Exit.FAILED_CELLS)
