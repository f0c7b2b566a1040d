"""Groups of options: a command takes a group as its argument `options`, and its command line has every option of it."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from snnbench.cli.options import (
    GRAPHS,
    AdapterOption,
    EnvOption,
    NirOption,
    OnlyOption,
    ProfileOption,
    SetOption,
    StepOption,
    Unfinished,
    Where,
    axis_option,
    config_path,
    default_threads,
    recording_folder,
)
from snnbench.environments import Env

if TYPE_CHECKING:
    from snnbench.plan.config import Config
    from snnbench.plan.shard import Shard
    from snnbench.recording.reading import Recording
    from snnbench.run.request import RunRequest

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The options that choose and change the cells of a config, and that name adapters and their environments."""

    neurons: Annotated[
        list[str] | None,
        axis_option(
            "-N",
            "--neurons",
            metavar="N",
            help="Neurons of a layer, or widths of input and layers: 784-1000-10, 700-256R-20.",
        ),
    ] = None
    batch: Annotated[list[int] | None, axis_option("-B", "--batch", metavar="B", help="Samples of a batch.")] = None
    steps: Annotated[list[int] | None, axis_option("-T", "--steps", metavar="T", help="Time steps.")] = None
    layers: Annotated[list[int] | None, axis_option("-L", "--layers", metavar="L", help="Layers.")] = None
    device: Annotated[list[str] | None, axis_option("--device", metavar="NAME", help="cpu or cuda.")] = None
    dtype: Annotated[
        list[str] | None,
        axis_option("--dtype", metavar="NAME", help="float32, bfloat16 or float16."),
    ] = None
    profile: ProfileOption = None
    nir: NirOption = None
    dt: StepOption = None
    input_rate: Annotated[
        list[float] | None, axis_option("--input-rate", metavar="RATE", help="Spikes per step of the input.")
    ] = None
    amplitude: Annotated[
        list[float] | None,
        axis_option("--amplitude", metavar="SIZE", help="The size of a spike that enters a NIR graph."),
    ] = None
    only: OnlyOption = None
    settings: SetOption = None
    env: EnvOption = Env.managed
    adapter: AdapterOption = None

    @property
    def changes(self) -> list[str]:
        """The user's changes of config values."""
        return self.settings or []

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The axes of cases that the user gave, in place of the config's."""
        given = {
            **self._widths,
            "batch": self.batch,
            "time_steps": self.steps,
            "layers": self.layers,
            "device": self.device,
            "dtype": self.dtype,
            "profile": self.profile,
            "graph": self.nir,
            "dt": self.dt,
            "input_rate": self.input_rate,
            "amplitude": self.amplitude,
        }
        return {axis: values for axis, values in given.items() if values}

    def config(self, named: str, default: str, executor: Where = Where.local) -> "Config":
        """The config that the user `named`, with these options. Raises ConfigError, BadParameter.

        For NIR graphs the config is GRAPHS, not the command's `default`.
        """
        from snnbench.machine import gpus
        from snnbench.plan import config as configs

        cards = len(gpus.visible())  # cells are dealt out among them
        path = config_path(GRAPHS if self.nir and named == default else named)
        return configs.load(path, self.changes, default_threads(executor), self.axes, cards)

    @property
    def _widths(self) -> dict[str, list[Any]]:
        """The neurons of all layers, or the widths of the input and of each layer. Raises BadParameter."""
        given = self.neurons or []
        if all(each.isdecimal() for each in given):
            return {"neurons": [int(each) for each in given]}
        if all(re.fullmatch(r"\d+(-\d+R?)+", each) for each in given):
            return {"widths": given}
        expected = (
            "expected the neurons of every layer, such as 256, or widths of input and layers: 784-1000-10, 700-256R-20"
        )
        raise typer.BadParameter(f"{', '.join(given)}: {expected}", param_hint="-N")

    @property
    def conditions(self) -> tuple[str, ...]:
        """The user's conditions on cells."""
        return tuple(self.only or [])

    @property
    def adapter_files(self) -> tuple[Path, ...]:
        """The user's adapter files."""
        return tuple(self.adapter or [])

    def announce(self) -> None:
        """Say which adapters of snnbench itself the user's files replace: numbers of that name are not comparable."""
        from snnbench.adapter.discovery import replaced
        from snnbench.run.progress import say

        for name, path in replaced(self.adapter_files).items():
            say(f"{path} replaces snnbench's own adapter {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running(Choice):
    """The options of a run: its cells, its recording, and the machines that it uses."""

    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            callback=recording_folder,
            help="The recording's folder; a dated one in results/ if left out.",
        ),
    ] = None
    devices: Annotated[
        str | None,
        typer.Option("--devices", metavar="CARD,...", help="GPUs to use, by number or UUID; all if left out."),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard", metavar="I/N", help="Run the I-th of N parts; `snnbench merge` joins their recordings."
        ),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start a new recording; continue none.")] = False
    executor: Annotated[
        Where, typer.Option("--executor", help="local: on this machine; slurm: each shard a job of one array.")
    ] = Where.local
    shards: Annotated[
        int | None,
        typer.Option("--shards", metavar="N", min=1, help="How many jobs; one for each case, up to 16, if left out."),
    ] = None
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            "--slurm", metavar="KEY=VALUE", help="An option of sbatch: partition=gpu, time=60, exclusive, nodes=2"
        ),
    ] = None

    def check(self) -> None:
        """Raise BadParameter for an option that does not apply to the executor."""
        is_slurm = self.executor is Where.slurm
        for name in ("shard", "devices") if is_slurm else ("shards", "slurm"):
            if getattr(self, name):
                why = "Slurm chooses" if is_slurm else "only with --executor slurm"
                raise typer.BadParameter(f"{why}; leave it out", param_hint=f"--{name}")

    @property
    def part(self) -> "Shard | None":
        """The shard to run, None for all cells. Raises ShardError."""
        from snnbench.plan.shard import parse

        return parse(self.shard) if self.shard else None

    def request(self, **more: Any) -> "RunRequest":
        """The request of a run with these options, and the fields in `more`."""
        from snnbench.run.request import RunRequest

        return RunRequest(
            adapter_files=self.adapter_files,
            only=self.conditions,
            env=self.env,
            output=self.output,
            shard=self.part,
            fresh=self.fresh,
            devices=self.devices,
            **more,
        )

    def submit(self, request: "RunRequest") -> "tuple[Recording, list[str]]":
        """Run the request as jobs. Returns the recording, and a line for each job that did not finish."""
        from snnbench.run.slurm.scheduler import options
        from snnbench.run.slurm.submit import run_jobs

        return run_jobs(request, self.shards, options(self.slurm or []))


def require_finished(unfinished: list[str]) -> None:
    """Raise Unfinished if there is a line for a job that did not finish."""
    if unfinished:
        raise Unfinished("\n".join([*unfinished, "not finished; the same command runs the missing cells"]))


def grouped(command: Callable[..., Result]) -> Callable[..., Result]:
    """The command with a parameter for each option of its group, in place of the parameter `options`."""
    signature = inspect.signature(command)
    group = signature.parameters["options"].annotation
    names = [field.name for field in fields(group)]
    parameters = [
        part.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
        for part in (inspect.signature(group).parameters.values() if name == "options" else [parameter])
    ]

    @wraps(command)
    def expanded(**given: Any) -> Result:
        options = group(**{name: given.pop(name) for name in names})
        return command(**given, options=options)

    expanded.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return expanded
