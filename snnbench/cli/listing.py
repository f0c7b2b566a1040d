"""`snnbench list`: the adapters there are, and what each needs."""

import typer

from snnbench.cli.options import AdapterOption


def list_adapters(adapter: AdapterOption = None) -> None:
    """Adapters, variants, pinned versions, and what is missing with the command that gets it."""
    from snnbench import environments, machine
    from snnbench.adapter import label
    from snnbench.library import discover

    cuda = machine.has_cuda()
    lines = ["| library | version | backend | environment | what it is |", "| --- | --- | --- | --- | --- |"]
    for found in discover(adapter or []).values():
        ready = environments.is_ready(environments.plan(found, cuda))
        state = "ready" if ready else f"missing: `snnbench env sync {found.name}`"
        version = found.dependencies[0].partition("==")[2] or "any"
        for variant, about in found.variants.items():
            what = about if len(found.variants) > 1 else found.about
            lines.append(f"| {label(found.name, variant)} | {version} | {found.backends[variant]} | {state} | {what} |")
    typer.echo("\n".join(lines))
