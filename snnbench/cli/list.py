"""`snnbench list`: all contenders, and the requirements of each."""

from typing import TYPE_CHECKING

import typer

from snnbench.cli.options import AdapterOption

if TYPE_CHECKING:
    from snnbench.adapter.declaration import Adapter

COLUMNS = ("library", "version", "devices", "exact in", "environment", "what it is")


def list_adapters(adapter: AdapterOption = None) -> None:
    """List every contender: pinned version, devices, profiles in which it is exact, and how to get anything missing."""
    from snnbench.adapter.contender import label
    from snnbench.adapter.discovery import discover
    from snnbench.machine import gpus
    from snnbench.report.section import Table
    from snnbench.report.text.table import markdown

    cuda = gpus.has_cuda()
    rows = []
    for declared in discover(adapter or []).values():
        for name, variant in declared.variants.items():
            cells = (
                label(declared.name, name),
                variant.pins.version or "any",
                " ".join(variant.devices),
                " ".join(variant.exact) or ("deviates" if variant.deviation else "not said"),
                _state(declared, name, cuda),
                variant.about,
            )
            rows.append(cells)
    typer.echo(markdown(Table(COLUMNS, rows, len(COLUMNS))))


def _state(adapter: "Adapter", name: str, cuda: bool) -> str:
    """State of a contender: ready to run here, or the reason why not and the command that would change it."""
    from snnbench.environments import store

    variant = adapter.variants[name]
    environment = store.plan(adapter, name, cuda)
    command = f"`snnbench env sync {environment.adapter}`"
    missing = []
    if variant.needs:
        missing.append(f"needs {variant.needs}")
    if not cuda and "cpu" not in variant.devices:
        missing.append(f"no CUDA device here; on a machine with one: {command}")
    elif not store.is_ready(environment):
        missing.append(f"missing: {command}")
    return "; ".join(missing) or "ready"
