"""`snnbench verify`: the exam and the spot check, without timing anything."""

from functools import partial
from typing import Annotated

import typer

from snnbench.cli.groups import Choice, grouped
from snnbench.cli.options import ConfigOption
from snnbench.cli.screen import show
from snnbench.exits import Exit


@grouped
def verify(
    libraries: Annotated[
        list[str] | None, typer.Argument(metavar="[LIBRARY...]", help="norse, norse/box or norse/*; all if left out.")
    ] = None,
    config: ConfigOption = "exam",
    *,
    options: Choice,
) -> None:
    """Prove that libraries do the requested work: spikes by position, gradients of weight, bias and input."""
    from snnbench.adapter import contender
    from snnbench.adapter.discovery import discover
    from snnbench.plan import config as configs
    from snnbench.plan import selection
    from snnbench.plan.cell import Cell, exchange_cells
    from snnbench.report.text import verdict_table
    from snnbench.run.local import execute
    from snnbench.run.preparation import context
    from snnbench.run.store import InMemory

    options.announce()
    adapters = discover(options.adapter_files)
    loaded = options.config(config, "exam")
    patterns = [pattern if "/" in pattern else f"{pattern}/*" for pattern in libraries or []]
    if patterns and patterns[0].startswith("!"):
        patterns.insert(0, "*/*")
    wanted, wrong = contender.find_all(patterns, adapters)
    if wrong:
        raise wrong[0]
    conditions = [selection.parse(expression) for expression in options.conditions]
    named = [
        work for work in configs.expand(loaded, adapters) if not patterns or (work.library, work.variant) in wanted
    ]
    works = [work for work in named if all(holds(work) for holds in conditions)]
    if named and not works:
        raise selection.nothing_left(options.conditions, named)
    if not works:
        whom = f" for {' '.join(libraries)}" if libraries else ""
        raise typer.BadParameter(f"config {loaded.name} has no cell left{whom}; --config names another")
    run, kept = context(works, adapters, options.env, loaded.protocol), InMemory()
    try:
        cells = [Cell(work.case, work.library, work.variant, 0, "verify") for work in works]
        execute([*cells, *exchange_cells(works, adapters)], run, kept)
    finally:  # an interrupted command prints what it has
        if kept.records:
            show(partial(verdict_table.report, kept.records))
    if any(record.status == "failed" or record.outcome.kind == "unprovable" for record in kept.records):
        raise typer.Exit(Exit.FAILED_CELLS)
