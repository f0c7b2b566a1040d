"""`snnbench request`: it prints a worker's request, to run a worker by hand, under a debugger or a profiler."""

import os
import shlex
from contextlib import suppress
from enum import StrEnum
from typing import Annotated

import typer

from snnbench.cli.groups import Choice, grouped
from snnbench.cli.options import ConfigOption
from snnbench.environments import Env
from snnbench.files import home


class Measured(StrEnum):
    """The measures of a worker."""

    time = "time"
    memory = "memory"
    verify = "verify"


@grouped
def request(
    library: Annotated[str, typer.Argument(metavar="LIBRARY", help="norse, or norse/box.")],
    measure: Annotated[Measured, typer.Option(help="What to measure.")] = Measured.time,
    config: ConfigOption = "quick",
    *,
    options: Choice,
) -> None:
    """Print one request: the config's first case for this library, or its first case if it does not run this library.

    The command line of the worker, which reads the request from its standard input, goes to standard error.

    snnbench request norse/box > request.json
    """
    from snnbench.adapter import contender
    from snnbench.adapter.discovery import discover
    from snnbench.environments import store
    from snnbench.machine import cpus, description, gpus
    from snnbench.plan import config as configs
    from snnbench.plan import selection
    from snnbench.plan.cell import Cell
    from snnbench.run import process

    adapters = discover(options.adapter_files)
    contenders = contender.find(library, adapters)
    if len(contenders) != 1:
        raise typer.BadParameter("name one variant", param_hint="LIBRARY")
    (name, variant) = contenders[0]
    loaded = options.config(config, "quick")
    conditions = [selection.parse(expression) for expression in options.conditions]
    cases = [
        case
        for case in (case for sweep in loaded.sweeps for case in sweep.cases())
        if all(holds(contender.Work(case, name, variant)) for holds in conditions)
    ]
    if not cases:
        raise typer.BadParameter("no case of this config is left", param_hint="--only")
    own = set()
    with suppress(configs.ConfigError):  # other libraries of the config may be missing here
        own = {work.case for work in configs.expand(loaded, adapters) if work.library == name}
    case = next((case for case in cases if case in own), cases[0])
    cell = Cell(case, name, variant, 0, measure.value)
    try:
        pinned = cpus.cpus(case.threads)
    except ValueError as error:
        raise typer.BadParameter(f"{error}; --set case.threads=N changes it", param_hint="case") from error
    question = cell.request(loaded.protocol, pinned, description.memory_bytes(description.facts()))
    typer.echo(question.encode(), nl=False)
    managed = options.env is Env.managed
    python = store.plan(adapters[name], variant, gpus.has_cuda(), case.workload).python if managed else store.current()
    worker = process.environment(case.threads, home(), process.further(cell.measure, home()), current=not managed)
    variables = [f"{key}={value}" for key, value in worker.items() if os.environ.get(key) != value]
    removed = [f"--unset={key}" for key in os.environ if key not in worker]
    line = shlex.join(["env", *removed, *variables, *process.command(python, adapters[name].path)])
    typer.echo(f"for: {line}", err=True)
