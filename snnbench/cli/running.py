"""`snnbench run`: from a config file to a recording and its table."""

from datetime import date
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
    from snnbench import __version__, contender, machine, record, report, runner, selection
    from snnbench import config as configs
    from snnbench.adapter import label
    from snnbench.case import digest
    from snnbench.cell import cells
    from snnbench.cli.progress import describe, say, shown
    from snnbench.library import discover

    loaded = configs.load(config_path(config), settings or [])
    adapters = discover(adapter or [])
    conditions = [selection.parse(expression) for expression in only or []]
    works = [w for w in configs.expand(loaded, adapters) if all(holds(w) for holds in conditions)]
    if not works:
        raise typer.BadParameter("no cell of this config is left", param_hint="--only")
    plan = cells(works, loaded.protocol)
    if dry_run:
        typer.echo("\n".join(describe(cell) for cell in plan))
        say(f"{len(plan)} cells, {len(works)} of them different work")
        return

    facts = machine.facts()
    model = machine.model(facts)
    interpreters = runner.interpreters(works, adapters, env is Env.managed, machine.has_cuda(), say)
    setup = runner.Run(adapters, interpreters, loaded.protocol, model, runner.memory_bytes(facts))
    slug = machine.slug(facts)
    identity = digest([loaded.resolved(), only, env.value, model])
    folder = output or record.choose(Path("results"), loaded.name, identity, slug, date.today())
    about = {
        "snnbench": __version__,
        "config": loaded.resolved(),
        "only": only,
        "baseline": label(*contender.find(loaded.baseline, adapters)[0]),
        "identity": identity,
        "machine": slug,
    }
    with record.append(folder, about, {**facts, "model": model}) as writer:
        writer.environments({i.key: i.versions for i in interpreters.values() if i.key})
        done = writer.done()
        left = [cell for cell in plan if setup.key(cell) not in done]
        if len(left) < len(plan):
            say(f"{folder}: continues; {len(plan) - len(left)} of {len(plan)} cells are there")
        try:
            with shown(left) as progress:
                runner.run(plan, setup, writer, progress)
        except KeyboardInterrupt:
            say(f"{folder}: what was measured is kept, and the same command continues")
            raise
        writer.finish()
    recording = record.read(folder)
    typer.echo(report.markdown([recording]), nl=False)
    say(f"{report.coverage(recording.records)}; recorded in {folder} ({', '.join(record.FILES)})")
    if any(found.status == "failed" for found in recording.records):
        raise typer.Exit(Exit.FAILED_CELLS)
