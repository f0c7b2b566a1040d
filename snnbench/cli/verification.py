"""`snnbench verify`: the exam and the spot check, without timing anything."""

from typing import Annotated

import typer

from snnbench import cards, interpreters, known_outcomes, machine
from snnbench.cli.exits import Exit
from snnbench.cli.options import AdapterOption, ConfigOption, EnvOption, OnlyOption, SetOption, config_path
from snnbench.interpreters import Env


def verify(
    libraries: Annotated[
        list[str] | None, typer.Argument(metavar="[LIBRARY...]", help="norse, norse/box or norse/*; all if left out.")
    ] = None,
    config: ConfigOption = "exam",
    only: OnlyOption = None,
    settings: SetOption = None,
    env: EnvOption = Env.managed,
    adapter: AdapterOption = None,
) -> None:
    """Prove that libraries do the work asked for: spikes by position, gradients of weight, bias and input."""
    from snnbench import config as configs
    from snnbench import contender, runner, selection
    from snnbench.cell import Cell
    from snnbench.cli.progress import say, shown
    from snnbench.library import discover
    from snnbench.verdicts import table

    adapters = discover(adapter or [])
    loaded = configs.load(config_path(config), settings or [])
    patterns = [pattern if "/" in pattern else f"{pattern}/*" for pattern in libraries or []]
    if patterns and patterns[0].startswith("!"):
        patterns.insert(0, "*/*")
    wanted, wrong = contender.find_all(patterns, adapters)
    if wrong:
        raise wrong[0]
    conditions = [selection.parse(expression) for expression in only or []]
    works = [
        work
        for work in configs.expand(loaded, adapters)
        if all(holds(work) for holds in conditions) and (not patterns or (work.library, work.variant) in wanted)
    ]
    if not works:
        whom = f" for {' '.join(libraries)}" if libraries else ""
        raise typer.BadParameter(f"config {loaded.name} has no cell left{whom}; --config names another")
    facts = machine.facts()
    pythons = interpreters.interpreters(works, adapters, env is Env.managed, cards.has_cuda(), say)
    setups = {"": runner.Setup(adapters, pythons)}
    setup = runner.Run(setups, loaded.protocol, machine.model(facts), machine.memory_bytes(facts))
    records = []
    cells = [Cell(work.case, work.library, work.variant, 0, "verify") for work in works]
    with shown(cells) as progress:
        for cell in cells:
            progress.start(cell)
            records.append(runner.measure(cell, setup.key(cell), setup, known_outcomes.Inference()))
            progress.end(cell, records[-1])
    typer.echo(table(records))
    if any(found.status == "failed" for found in records):
        raise typer.Exit(Exit.FAILED_CELLS)
