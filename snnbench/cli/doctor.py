"""`snnbench doctor`: conditions that would spoil a measurement here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from snnbench.cli.options import AdapterOption, EnvOption
from snnbench.cli.screen import terminal
from snnbench.environments import Env

if TYPE_CHECKING:
    from snnbench.machine.finding import Finding


def doctor(env: EnvOption = Env.managed, adapter: AdapterOption = None) -> None:
    """Say what would spoil a measurement on this machine, and what to do about it."""
    from snnbench.adapter.discovery import discover
    from snnbench.environments import store
    from snnbench.machine import description
    from snnbench.machine import doctor as doctors

    facts = description.facts()
    adapters = discover(adapter or ()).values()
    versions = store.versions(store.current()) if env is Env.current else None
    findings = doctors.examine(facts, adapters=adapters, versions=versions)
    if console := terminal():
        from snnbench.report.terminal import doctor_view

        doctor_view.show(console, findings)
    else:
        _print(findings)


def _print(findings: "Sequence[Finding]") -> None:
    """A line for each finding, for a program."""
    from snnbench.report.terminal.doctor_view import WORDS, counts

    for finding in findings:
        step = f" -> {finding.step}" if finding.step else ""
        typer.echo(f"{WORDS[finding.state]:<7}  {finding.name}: {finding.what}{step}")
    typer.echo(counts(findings))
