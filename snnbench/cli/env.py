"""`snnbench env`: the environments that adapters run in."""

from enum import StrEnum
from typing import Annotated

import typer

from snnbench.cli.options import AdapterOption
from snnbench.units import MIB

app = typer.Typer(help="Make, list and remove the environments that adapters run in.", no_args_is_help=True)


class Device(StrEnum):
    """The device of a machine."""

    cpu = "cpu"
    cuda = "cuda"


LibrariesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[LIBRARY...]", help="Names of libraries; all if left out.")
]


@app.command(name="sync")
def sync(
    libraries: LibrariesArgument = None,
    adapter: AdapterOption = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Resolve the pins, with those for CUDA, and install nothing."),
    ] = False,
    device: Annotated[
        Device | None,
        typer.Option(
            "--device", help="For a machine with such devices, to build an image; for this machine if left out."
        ),
    ] = None,
) -> None:
    """Make the missing environments. This needs the network; later runs do not."""
    from snnbench.adapter.contender import find
    from snnbench.adapter.discovery import discover
    from snnbench.environments import store
    from snnbench.machine import gpus
    from snnbench.run.progress import say

    adapters = discover(adapter or [])
    cuda = device is Device.cuda if device else gpus.has_cuda() or dry_run
    patterns = [pattern if "/" in pattern else f"{pattern}/*" for pattern in libraries or ["*"]]
    wanted = dict.fromkeys(found for pattern in patterns for found in find(pattern, adapters))
    planned = {contender: store.plan(adapters[contender[0]], contender[1], cuda) for contender in wanted}
    of_use = {planned[one] for one in wanted if cuda or "cpu" in adapters[one[0]].variants[one[1]].devices}
    for environment in dict.fromkeys(planned.values()):
        if dry_run:
            typer.echo(f"{environment.adapter}: {' '.join(store.resolve(environment))}")
        elif environment in of_use:
            typer.echo(f"{environment.adapter}: {store.sync(environment, say).folder}")
        else:
            here = "" if device else ", which this machine lacks"
            typer.echo(f"{environment.adapter}: not made: it needs a CUDA device{here}")


@app.command(name="list")
def list_environments() -> None:
    """List the environments and their sizes; files that uv shares with its cache count fully."""
    from snnbench.environments import store

    for environment in store.installed():
        size = f"{environment.size_bytes / MIB:.0f} MiB"
        typer.echo(f"{environment.folder}  {size}  {', '.join(environment.adapters) or 'half made'}")


@app.command(name="remove")
def remove(libraries: LibrariesArgument = None) -> None:
    """Remove the environments of these libraries, or all."""
    from snnbench.environments import store
    from snnbench.run.progress import say

    installed = store.installed()
    made = {name for environment in installed for name in environment.adapters}
    of_name = {name: {one for one in made if one == name or one.startswith(f"{name}/")} for name in libraries or []}
    if missing := [name for name, environment in of_name.items() if not environment]:
        known = ", ".join(sorted(made)) or "none"
        raise typer.BadParameter(f"no environment of {', '.join(missing)} (there are: {known})", param_hint="LIBRARY")
    for environment in installed:
        if not libraries or set().union(*of_name.values()) & set(environment.adapters):
            store.remove(environment, say)
