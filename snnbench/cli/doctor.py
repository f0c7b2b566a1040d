"""`snnbench doctor`: conditions that would spoil a measurement here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from snnbench.cli.options import AdapterOption, EnvOption
from snnbench.cli.screen import terminal
from snnbench.environments import Env

if TYPE_CHECKING:
    from snnbench.machine.diagnosis import Diagnosis


def doctor(env: EnvOption = Env.managed, adapter: AdapterOption = None) -> None:
    """Say what would spoil a measurement on this machine, and what to do about it."""
    from snnbench.adapter.discovery import discover
    from snnbench.environments import store
    from snnbench.machine import description
    from snnbench.machine import doctor as doctors

    facts = description.facts()
    adapters = discover(adapter or ()).values()
    versions = store.versions(store.current()) if env is Env.current else None
    diagnoses = doctors.examine(facts, adapters=adapters, versions=versions)
    if console := terminal():
        from snnbench.report.terminal import doctor_view

        doctor_view.show(console, diagnoses)
    else:
        _print(diagnoses)


def _print(diagnoses: "Sequence[Diagnosis]") -> None:
    """A line for each diagnosis, for a program."""
    from snnbench.report.terminal.doctor_view import WORDS, counts

    for diagnosis in diagnoses:
        step = f" -> {diagnosis.step}" if diagnosis.step else ""
        typer.echo(f"{WORDS[diagnosis.state]:<7}  {diagnosis.name}: {diagnosis.what}{step}")
    typer.echo(counts(diagnoses))
