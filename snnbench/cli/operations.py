"""`snnbench operations`: it counts the operations of cases, in the vocabulary of NeuroBench."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnbench.cli.options import (
    OnlyOption,
    OutputOption,
    SetOption,
    TableFormat,
    config_path,
    default_threads,
    emit,
    require_writable,
)
from snnbench.cli.screen import show

if TYPE_CHECKING:
    from snnbench.cases.case import Case


def operations(
    recordings: Annotated[
        list[Path] | None, typer.Argument(metavar="[RECORDING...]", help="Folders under results/ with the cases.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Count the cases of this config; quick if nothing is named."
        ),
    ] = None,
    only: OnlyOption = None,
    settings: SetOption = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Run every sample of every case, however long and large it is.")
    ] = False,
    form: Annotated[TableFormat, typer.Option("--format", help="How to print it.")] = TableFormat.table,
    output: OutputOption = None,
) -> None:
    """Count footprint, sparsity and operations of each case, as NeuroBench defines them. Nothing is timed.

    The spikes are those of the reference, so the numbers are of the work and not of a library.
    """
    from snnbench.analysis import operation_counts
    from snnbench.report.text import operations_table
    from snnbench.run.progress import say

    require_writable(output)
    cases = _cases(recordings or [], config, only or [], settings or [])
    works = []
    groups = operation_counts.by_work(cases)
    for position, (work, group) in enumerate(groups.items(), start=1):
        if len(groups) > 1:
            say(f"{position} of {len(groups)}: {work.kind}, {work.sizes()}")
        works.append((operation_counts.count(work, whole), group))
    if write := operations_table.FORMATS.get(form):
        emit(write(works), output)
    else:
        show(lambda _: operations_table.report(works), form, output)


def _cases(recordings: list[Path], config: str | None, only: list[str], settings: list[str]) -> "list[Case]":
    """The different cases that a user chose. Raises BadParameter."""
    from snnbench.adapter.contender import Work
    from snnbench.plan import config as configs
    from snnbench.plan import selection
    from snnbench.recording import reading

    if recordings and (config or settings):
        raise typer.BadParameter("name recordings or a config, not both", param_hint="--config" if config else "--set")
    if wrong := [expression for expression in only if not selection.of_cases(expression)]:
        raise typer.BadParameter(
            f"{wrong[0]}: the operations of a case are those of every library", param_hint="--only"
        )
    if recordings:
        cases = [record.case for folder in recordings for record in reading.read(folder).records]
    else:
        loaded = configs.load(config_path(config or "quick"), settings, default_threads())
        cases = [case for sweep in loaded.sweeps for case in sweep.cases()]
    conditions = [selection.parse(expression) for expression in only]
    chosen = [case for case in dict.fromkeys(cases) if all(holds(Work(case, "", "")) for holds in conditions)]
    if not chosen:
        raise typer.BadParameter("no case is left", param_hint="--only")
    return chosen
