"""`snnbench list`: all contenders, and the requirements of each."""

from typing import TYPE_CHECKING, Annotated

import typer

from snnbench.cli.options import AdapterOption
from snnbench.cli.screen import terminal

if TYPE_CHECKING:
    from rich.console import Console

    from snnbench.adapter.declaration import Adapter, Variant
    from snnbench.report.section import Table

COLUMNS = ("library", "version", "devices", "exact in", "environment", "what it is")
READY = "ready"
NOT_MADE = "missing environment"


def list_adapters(
    libraries: Annotated[
        list[str] | None, typer.Argument(metavar="[LIBRARY...]", help="Libraries of which to list all variants.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List the variants of all libraries.")] = False,
    adapter: AdapterOption = None,
) -> None:
    """List the libraries: pinned version, devices, profiles in which they are exact, and how to get anything missing.

    With a library or --all: a line for each variant. A pipe gets the variants of all libraries.
    """
    from snnbench.adapter.discovery import discover
    from snnbench.machine import gpus
    from snnbench.report.text import markdown
    from snnbench.suggestions import unknown

    adapters = discover(adapter or [])
    for library in libraries or []:
        if library not in adapters:
            raise typer.BadParameter(unknown("library", library, adapters), param_hint="LIBRARY")
    cuda = gpus.has_cuda()
    chosen = [adapters[library] for library in libraries] if libraries else list(adapters.values())
    console = terminal()
    if console is None:
        typer.echo(markdown.table(_variants(chosen, cuda)))
    elif libraries or every:
        _show_variants(console, chosen, cuda)
    else:
        _show_libraries(console, chosen, cuda)


def _variants(adapters: "list[Adapter]", cuda: bool) -> "Table":
    """A row for each variant, with all that its file declares."""
    from snnbench.adapter.contender import label
    from snnbench.report.section import Table

    rows = [
        (
            label(declared.name, name),
            variant.pins.version or "any",
            " ".join(variant.devices),
            _exact(variant),
            _state(declared, name, cuda),
            variant.about,
        )
        for declared in adapters
        for name, variant in declared.variants.items()
    ]
    return Table(COLUMNS, rows, len(COLUMNS))


def _show_libraries(console: "Console", adapters: "list[Adapter]", cuda: bool) -> None:
    """A line for each library, and the command that makes the missing environments."""
    from snnbench.environments import store
    from snnbench.report.section import Table
    from snnbench.report.terminal.drawing import draw, note, paragraph

    rows, missing = [], {}
    for declared in adapters:
        variants = declared.variants.values()
        states = {name: _missing(declared, name, cuda) for name in declared.variants}
        state = READY if "" in states.values() else next(iter(states.values()))
        if NOT_MADE in states.values():
            missing[declared.name] = declared.path
        rows.append(
            (
                declared.name,
                declared.variants[declared.default].pins.version or "any",
                " ".join(dict.fromkeys(device for variant in variants for device in variant.devices)),
                " ".join(dict.fromkeys(profile for variant in variants for profile in variant.exact)) or "-",
                state,
                str(len(declared.variants)),
            )
        )
    columns = ("library", "version", "devices", "exact in", "state", "variants")
    draw(console, [("", Table(columns, rows, len(columns) - 1, leaving=("version",)))])
    console.print()
    if missing:
        paragraph(console, f"make the missing environments: {store.sync_command(missing)}")
    note(console, f"one library: snnbench list {adapters[0].name}    all variants: snnbench list --all")


def _show_variants(console: "Console", adapters: "list[Adapter]", cuda: bool) -> None:
    """A line for each variant, and below the tables what each of them is."""
    from rich.text import Text

    from snnbench.adapter.contender import label
    from snnbench.report.section import Table
    from snnbench.report.terminal.drawing import draw, note, paragraph

    columns = ("variant", "version", "devices", "exact in", "state")
    rows = []
    for declared in adapters:
        for name, variant in declared.variants.items():
            state = _missing(declared, name, cuda) or READY
            version = variant.pins.version or "any"
            rows.append((label(declared.name, name), version, " ".join(variant.devices), _exact(variant), state))
    draw(console, [("", Table(columns, rows, len(columns), leaving=("version",)))])
    console.print()
    for declared in adapters:
        paragraph(console, Text.assemble((declared.name, "bold"), f": {declared.about}"))
        for name, variant in declared.variants.items():
            paragraph(console, Text.assemble((label(declared.name, name), "bold"), f": {variant.about}"), indent=2)
    console.print()
    note(console, "make an environment: snnbench env sync LIBRARY    prove the work: snnbench verify LIBRARY")


def _missing(adapter: "Adapter", name: str, cuda: bool) -> str:
    """What a variant lacks on this machine, in a few words; "" if it is ready."""
    from snnbench.environments import store

    variant = adapter.variants[name]
    if not cuda and "cpu" not in variant.devices:
        return "needs CUDA"
    return "" if store.is_ready(store.plan(adapter, name, cuda)) else NOT_MADE


def _exact(variant: "Variant") -> str:
    return " ".join(variant.exact) or ("deviates" if variant.deviation else "not said")


def _state(adapter: "Adapter", name: str, cuda: bool) -> str:
    """State of a contender: ready to run here, or the reason why not and the command that would change it."""
    from snnbench.environments import store

    variant = adapter.variants[name]
    environment = store.plan(adapter, name, cuda)
    command = f"`{environment.about['command']}`"
    missing = []
    if variant.needs:
        missing.append(f"needs {variant.needs}")
    if not cuda and "cpu" not in variant.devices:
        missing.append(f"no CUDA device here; on a machine with one: {command}")
    elif not store.is_ready(environment):
        missing.append(f"missing: {command}")
    return "; ".join(missing) or READY
