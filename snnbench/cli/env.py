"""`snnbench env`: the environments that adapters run in."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from snnbench.cli.flags import Command, Group
from snnbench.cli.options import AdapterOption, config_path
from snnbench.units import MIB

if TYPE_CHECKING:
    from snnbench.adapter.contender import Contender
    from snnbench.adapter.declaration import Adapter

app = typer.Typer(cls=Group, help="Make, list and remove the environments that adapters run in.", no_args_is_help=True)


class Device(StrEnum):
    """The device of a machine."""

    cpu = "cpu"
    cuda = "cuda"


LibrariesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[LIBRARY...]", help="Names of libraries; all if left out.")
]


@app.command(name="sync", cls=Command)
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
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Make those of a config's cells only: some workloads need further packages.",
        ),
    ] = None,
) -> None:
    """Make the missing environments. This needs the network; later runs do not."""
    from snnbench import workloads
    from snnbench.adapter.contender import find
    from snnbench.adapter.discovery import discover
    from snnbench.environments import store
    from snnbench.machine import gpus
    from snnbench.run.progress import say

    adapters = discover(adapter or [])
    cuda = device is Device.cuda if device else gpus.has_cuda() or dry_run
    patterns = [pattern if "/" in pattern else f"{pattern}/*" for pattern in libraries or ["*"]]
    named = dict.fromkeys(contender for pattern in patterns for contender in find(pattern, adapters))
    wanted = [(contender, workloads.DEFAULT) for contender in named]
    if config:
        wanted = [(contender, workload) for contender, workload in _of_configs(config, adapters) if contender in named]
    planned: dict[store.Environment, bool] = {}
    for (library, variant), workload in wanted:
        environment = store.plan(adapters[library], variant, cuda, workload)
        runs_here = cuda or "cpu" in adapters[library].variants[variant].devices
        planned[environment] = planned.get(environment, False) or runs_here
    for environment, is_of_use in planned.items():
        if dry_run:
            typer.echo(f"{environment.adapter}: {' '.join(store.resolve(environment))}")
        elif is_of_use:
            typer.echo(f"{environment.adapter}: {store.sync(environment, say).folder}")
        else:
            here = "" if device else ", which this machine lacks"
            typer.echo(f"{environment.adapter}: not made: it needs a CUDA device{here}")


def _of_configs(names: list[str], adapters: "dict[str, Adapter]") -> "list[tuple[Contender, str]]":
    """The contenders of these configs, each with the name of its workload. Raises ConfigError, BadParameter."""
    from snnbench.plan import config as configs

    works = [
        work
        for name in names
        for work in configs.expand(configs.load(config_path(name), default_threads=1, cards=1), adapters)
    ]
    return list(dict.fromkeys(((work.library, work.variant), work.case.workload) for work in works))


@app.command(name="list", cls=Command)
def list_environments() -> None:
    """List the environments and their sizes; files that uv shares with its cache count fully."""
    from snnbench.environments import store

    for environment in store.installed():
        size = f"{environment.size_bytes / MIB:.0f} MiB"
        typer.echo(f"{environment.folder}  {size}  {', '.join(environment.adapters) or 'half made'}")


@app.command(name="remove", cls=Command)
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
