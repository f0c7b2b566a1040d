"""`snnbench show`: it prints everything about one cell, and can measure the same work again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snnbench.cli.options import (
    GRAPHS,
    AdapterOption,
    EnvOption,
    NirOption,
    ProfileOption,
    StepOption,
    config_path,
    default_threads,
    save,
)
from snnbench.cli.screen import terminal
from snnbench.environments import Env
from snnbench.exits import Exit

if TYPE_CHECKING:
    from snnbench.cases.case import Case
    from snnbench.recording.reading import Recording
    from snnbench.recording.record import Record


def show(
    cell: Annotated[
        str, typer.Argument(metavar="CELL", help="A cell's name, or how it begins; of a library, its cells are listed.")
    ],
    where: Annotated[
        Path, typer.Option("--in", metavar="DIR", help="The recording, or a folder of recordings.")
    ] = Path("results"),
    replay: Annotated[
        bool, typer.Option("--replay", help="Measure the same work and the baseline again, and compare their ratio.")
    ] = False,
    trials: Annotated[int, typer.Option(min=1, help="Processes of a replay.")] = 3,
    log: Annotated[bool, typer.Option("--log", help="Print the output of a worker that failed.")] = False,
    code: Annotated[
        bool, typer.Option("--code", help="Print the code of the network in this library, for a script of your own.")
    ] = False,
    samples: Annotated[bool, typer.Option("--samples", help="Print every raw duration.")] = False,
    nir: NirOption = None,
    dt: StepOption = None,
    profile: ProfileOption = None,
    env: EnvOption = Env.managed,
    adapter: AdapterOption = None,
) -> None:
    """Print everything about a cell: outcome, checks, times, memory, settings.

    --replay measures it again with the adapter and pins of this installation; no code from the recording runs. --code
    prints how to build its network, also for the last cell of a library: snnbench show norse/box --code. With --nir
    it is that of your graph, whose weights are written to a file: snnbench show sinabs --code --nir my.nir
    """
    from snnbench.recording import lookup
    from snnbench.report.text import cell_description
    from snnbench.run.progress import say

    if nir and not code:
        raise typer.BadParameter("a graph has no cell to show; with --code its network in a library is printed")
    if nir:
        _print_code(*_of_graph(cell, {"graph": nir, "dt": dt, "profile": profile}, adapter))
        return
    folders = lookup.folders(where)
    listed = lookup.of_contender(cell, folders, lambda line: None)
    if code:
        shown = listed[-1][1] if listed else lookup.find(cell, folders, say)[1]
        _print_code(shown.library, shown.variant, shown.case, adapter)
        return
    if listed:
        for recording, one in listed:
            typer.echo(cell_description.line(recording, one))
        return
    recording, shown = lookup.find(cell, folders, say)
    if console := terminal():
        from snnbench.report.terminal import cell_card

        cell_card.show(console, recording, shown)
    else:
        typer.echo("\n".join(cell_description.lines(recording, shown)))
    if samples:
        typer.echo("\n".join(cell_description.samples(shown)) or "no durations: it was not timed")
    if log:
        typer.echo(shown.log.rstrip() or "no log: only failed workers leave one")
    if replay:
        _again(recording, shown, trials, env, adapter)


def _of_graph(
    contender: str, axes: dict[str, list[Any] | None], adapter: AdapterOption
) -> "tuple[str, str, Case, AdapterOption]":
    """The contender of this name, and the first case of a NIR graph that it runs."""
    from snnbench.adapter.contender import find
    from snnbench.adapter.discovery import discover
    from snnbench.plan import config as configs

    adapters = discover(tuple(adapter or ()))
    library, variant = find(contender, adapters)[0]
    given = {axis: values for axis, values in axes.items() if values}
    loaded = configs.load(config_path(GRAPHS), axes=given, default_threads=default_threads())
    cases = list(dict.fromkeys(case for sweep in loaded.sweeps for case in sweep.cases()))
    run = [case for case in cases if not adapters[library].variants[variant].refusal(case)]
    return library, variant, (run or cases)[0], adapter


def _print_code(library: str, variant: str, case: "Case", adapter: AdapterOption) -> None:
    """Print the code of a case's network, from the adapter of this installation; write the weights that it reads."""
    from snnbench.adapter.contender import UnknownContender, label
    from snnbench.adapter.discovery import discover
    from snnbench.code import script, weights

    declared = discover(tuple(adapter or ())).get(library)
    if declared is None or variant not in declared.variants:
        named = label(library, variant)
        raise UnknownContender(f"{named}: this installation has no such adapter; --adapter FILE names it")
    typer.echo(script(declared, declared.variants[variant], case), nl=False)
    if (read := weights(case)) is not None:
        save(read[1], Path(read[0]))


def _again(recording: "Recording", shown: "Record", trials: int, env: Env, adapter: AdapterOption) -> None:
    from snnbench.adapter.contender import UnknownContender, Work
    from snnbench.adapter.discovery import discover
    from snnbench.recording.lookup import UnknownCell
    from snnbench.run import local
    from snnbench.run import replay as replays
    from snnbench.run.preparation import context
    from snnbench.run.progress import ending, say
    from snnbench.run.store import InMemory

    if shown.side:  # the changes of a side are in the recording, and no code of a recording is run
        raise UnknownCell(f"{shown.cell}: is of one side of an A/B test; measure both again with snnbench ab")
    adapters = discover(adapter or [])
    if shown.library not in adapters or shown.variant not in adapters[shown.library].variants:
        raise UnknownContender(f"{shown.library}/{shown.variant} is not here; --adapter FILE adds it")
    base, without = replays.beside(recording, shown, adapters)
    works = [Work(one.case, one.library, one.variant) for one in (shown, *base)]
    here = context(works, adapters, env, replays.protocol(recording))
    say(replays.heading([shown, *base], trials))
    kept = InMemory()
    try:
        local.execute(replays.cells([shown, *base], trials), here, kept)
    finally:  # an interrupted replay prints the trials that it has
        typer.echo("\nreplayed:")
        for change in replays.changes(shown, recording, adapters[shown.library], here):
            typer.echo(f"changed since then: {change}")
        measured = [one for one in kept.records if one.status == "measured"]
        for record in kept.records:
            if record not in measured:
                typer.echo(ending(record))
        old, new = replays.trials(recording, shown), [one for one in measured if one.label == shown.label]
        verdicts = sorted({str(one.outcome.verdict) for one in new})
        typer.echo(f"{len(new)} of {trials} trials measured{''.join(f', {verdict}' for verdict in verdicts)}")
        for line in replays.lines(replays.compared(old, new)):
            typer.echo(line)
        if base:
            others = [one for one in measured if one.label == base[0].label]
            typer.echo(replays.conclusion(old, new, replays.trials(recording, base[0]), others))
        else:
            typer.echo(f"no ratio to the baseline: {without}")
    if len(measured) < len(kept.records):
        raise typer.Exit(Exit.FAILED_CELLS)
