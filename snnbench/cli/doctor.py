"""`snnbench doctor`: conditions that would spoil a measurement here, run-to-run noise, and forecasts of a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnbench.cli.groups import Choice, grouped
from snnbench.cli.options import ConfigOption, config_path, default_threads
from snnbench.cli.screen import terminal
from snnbench.environments import Env

if TYPE_CHECKING:
    from snnbench.machine.finding import Finding
    from snnbench.recording.reading import Recording


@grouped
def doctor(
    aa: Annotated[
        bool,
        typer.Option(
            "--aa",
           
            help="Time the config's baseline against itself, and say what change is detectable here.",
        ),
    ] = False,
    trials: Annotated[int, typer.Option(min=2, help="Processes of each case in the A/A experiment.")] = 10,
    config: ConfigOption = "quick",
    plan: Annotated[
        str,
        typer.Option("--plan", metavar="FILE", help="Predict the memory and the time of this config; run nothing."),
    ] = "",
    *,
    options: Choice,
) -> None:
    """Say what would spoil a measurement on this machine, and what to do about it.

    With --aa it also runs one contender in many processes. It prints how much 3, 5 and 10 trials differ with nothing
    changed, and the change that they would show. From then on `snnbench compare` calls a smaller difference no change.

    With --plan it does neither. It predicts, from the recordings under results/, the memory and the time of each cell
    of a config, the cells that will not fit, and the time of the whole run.
    """
    if plan:
        if aa:
            raise typer.BadParameter("--aa runs cells and --plan runs none; leave one of them out", param_hint="--plan")
        _plan(plan, options)
        return
    from snnbench.adapter.discovery import discover
    from snnbench.environments import store
    from snnbench.machine import description
    from snnbench.machine import doctor as doctors

    facts = description.facts()
    adapters = discover(options.adapter_files).values()
    versions = store.versions(store.current()) if options.env is Env.current else None
    findings = doctors.examine(facts, adapters=adapters, versions=versions)
    if console := terminal():
        from snnbench.report.terminal import doctor_view

        doctor_view.show(console, findings)
    else:
        _print(findings)
    if aa:
        _against_itself(trials, config, options)


def _print(findings: "Sequence[Finding]") -> None:
    """A line for each finding, for a program."""
    from snnbench.report.terminal.doctor_view import WORDS, counts

    for finding in findings:
        step = f" -> {finding.step}" if finding.step else ""
        typer.echo(f"{WORDS[finding.state]:<7}  {finding.name}: {finding.what}{step}")
    typer.echo(counts(findings))


def _plan(config: str, options: Choice) -> None:
    """Print the forecast of a config."""
    import psutil

    from snnbench.adapter.discovery import discover
    from snnbench.machine import description, gpus
    from snnbench.plan import config as configs
    from snnbench.report.text import forecast_table
    from snnbench.run.forecast import Limits
    from snnbench.run.forecaster import forecast
    from snnbench.run.request import Request

    loaded = configs.load(config_path(config, "--plan"), options.changes, default_threads())
    adapters = discover(options.adapter_files)
    works = Request(config=loaded, only=options.conditions).selected(adapters)
    facts = description.facts()
    available = psutil.virtual_memory().available
    limits = Limits.of(loaded.protocol, facts, available, gpus.has_cuda())
    predicted = forecast(loaded.name, works, loaded.protocol, adapters, _recorded(), str(facts["model"]), limits)
    if console := terminal():
        from snnbench.report.terminal import forecast_view

        forecast_view.show(console, predicted)
    else:
        typer.echo(forecast_table.text(predicted), nl=False)


def _recorded() -> "list[Recording]":
    """The recordings in results/; a malformed one is named and left out."""
    from snnbench.recording import lookup
    from snnbench.recording.record import RecordingError
    from snnbench.run.progress import say

    try:
        return lookup.readable(lookup.folders(Path("results")), say)
    except RecordingError as error:  # there is no recording, or the only one is malformed
        if Path("results").is_dir():
            say(f"left out: {error}")
        return []


def _against_itself(trials: int, config: str, options: Choice) -> None:
    from snnbench.analysis import noise
    from snnbench.plan import config as configs
    from snnbench.report.text import noise_table
    from snnbench.run import local
    from snnbench.run.progress import say
    from snnbench.run.request import Request

    path = config_path(config)
    baseline = configs.load(path, options.changes, default_threads()).baseline
    overrides = [
        f"sweep.libraries=[{baseline!r}]",
        'name="aa"',
        f"protocol.trials={trials}",
        "protocol.memory_trials=0",
    ]
    loaded = configs.load(path, [*options.changes, *overrides], default_threads())
    request = Request(config=loaded, adapter_files=options.adapter_files, only=options.conditions, env=options.env)
    recording = local.run(request)
    spread = noise.measured(recording)
    path = noise.keep(str(recording.model), spread)
    typer.echo(f"\n{baseline} against itself, {spread.trials} trials of each case ({recording.folder}):\n")
    if console := terminal():
        from snnbench.report.terminal.drawing import draw

        draw(console, [("", noise_table.spreads(spread))])
    else:
        typer.echo(noise_table.table(spread))
    typer.echo(
        f"\nBy chance: how much times differ with nothing changed, and by more {noise.ALPHA:.0%} of the time.\n"
        f"Detectable: the true change that shows as more than that {noise.POWER:.0%} of the time, in one cell; "
        "among many it must be larger."
    )
    say(f"kept in {path}: `snnbench compare` calls what differs by chance on this machine inconclusive")
