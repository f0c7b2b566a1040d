"""`snnbench nir`: the importers of libraries on NIR graphs, spike by spike, without timing anything."""

import math
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from snnbench.cli.options import AdapterOption, EnvOption, TableFormat, named, require_writable, writing
from snnbench.cli.screen import show
from snnbench.environments import Env
from snnbench.exits import Exit
from snnbench.suggestions import unknown


def nir(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="NIR graphs, or one recording of this command, to print it again."),
    ],
    dt: Annotated[
        list[float] | None,
        typer.Option("--dt", metavar="SECONDS", help="The time step, which NIR leaves open; may be repeated."),
    ] = None,
    library: Annotated[
        list[str] | None,
        typer.Option("--library", metavar="NAME", help="Only this library; may be repeated. All if left out."),
    ] = None,
    time_steps: Annotated[int, typer.Option("--steps", min=1, help="Time steps of the input.")] = 200,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Samples of the input.")] = 4,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed draws other spikes.")] = 0,
    input_rate: Annotated[
        float | None,
        typer.Option(help="Spikes per step of the input; 0.05, 0.1, 0.2 and 0.4 in turn if left out."),
    ] = None,
    amplitude: Annotated[float, typer.Option(help="The size of a spike of the input.")] = 1.0,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="An importer that takes longer is stopped.")
    ] = 300.0,
    adapter: AdapterOption = None,
    env: EnvOption = Env.managed,
    form: Annotated[TableFormat, typer.Option("--format", help="How to print it.")] = TableFormat.table,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", callback=named, help="Also record it, as a JSON file."),
    ] = None,
) -> None:
    """Say which libraries run the network of a NIR graph, and what the others run in its place.

    Each library's own importer reads the graph. Its output is compared, position by position, with the equations that
    NIR documents, by forward Euler at the time step asked for. Nothing is timed.

    snnbench nir graphs/lif.nir --dt 0.001
    """
    from snnbench.adapter.discovery import discover
    from snnbench.conformance.network import Input
    from snnbench.recording import conformance
    from snnbench.report.text import nir_table
    from snnbench.run import importers
    from snnbench.run.progress import say

    if output is not None:
        with writing(output):
            output.parent.mkdir(parents=True, exist_ok=True)
        require_writable(output)
    if len(files) == 1 and files[0].suffix == ".json":
        recorded = conformance.read(files[0])
    else:
        if not dt or not all(0 < step < float("inf") for step in dt):
            raise typer.BadParameter("name a time step above 0, in seconds, such as --dt 0.001", param_hint="--dt")
        if input_rate is not None and not 0 < input_rate <= 1:
            raise typer.BadParameter("spikes per step are above 0, and 1 at most", param_hint="--input-rate")
        if not math.isfinite(amplitude):
            raise typer.BadParameter("name a finite number", param_hint="--amplitude")
        if not timeout > 0:
            raise typer.BadParameter("expected seconds above 0, such as 300", param_hint="--timeout")
        stems = [file.stem for file in files]
        if duplicates := sorted({stem for stem in stems if stems.count(stem) > 1}):
            raise typer.BadParameter(f"two graphs have the name {duplicates[0]!r}", param_hint="FILE...")
        adapters = discover(tuple(adapter or []))
        known = {name: each for name, each in adapters.items() if each.imports_nir or each.no_nir}
        for name in library or []:
            if name not in adapters:
                raise typer.BadParameter(unknown("library", name, known), param_hint="--library")
        recorded = importers.examine(
            importers.Examination(
                files=files,
                steps_s=list(dict.fromkeys(dt)),
                adapters=[adapters[name] for name in dict.fromkeys(library or known)],
                given=Input(time_steps=time_steps, batch=batch, seed=seed, rate=input_rate, amplitude=amplitude),
                timeout_s=timeout,
                managed=env is Env.managed,
            ),
            say,
        )
    if write := nir_table.FORMATS.get(form):
        typer.echo(write(recorded), nl=False)
    else:
        show(partial(nir_table.report, recorded), form)
    if output is not None:  # after the table, which stays if the file cannot be written
        with writing(output):
            conformance.write(output, recorded)
        typer.echo(f"{output}: written", err=True)
    if any(row.outcome.status == "failed" or row.outcome.kind == "unprovable" for row in recorded.rows):
        raise typer.Exit(Exit.FAILED_CELLS)
