"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from snnbench.library import data_folder


class Env(StrEnum):
    """Where workers run: in environments that snnbench makes, or in the Python that runs snnbench."""

    managed = "managed"
    current = "current"


ConfigOption = Annotated[
    str,
    typer.Option("--config", "-c", metavar="FILE", help="A config file, or the name of one that comes with snnbench."),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="EXPR", help="Keep cells for which EXPR holds: library=norse/*,neurons<=512"),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a config value: protocol.trials=1, sweep.neurons=[64]"),
]
EnvOption = Annotated[
    Env, typer.Option("--env", help="managed: environments made from each adapter's pins; current: this Python.")
]
AdapterOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--adapter", metavar="FILE", help="An adapter file of your own. Its code runs with your rights: read it first."
    ),
]
RecordingsArgument = Annotated[list[Path], typer.Argument(metavar="RECORDING...", help="Folders under results/.")]


def config_path(name: str) -> Path:
    """The file that a user means: a path, or the bare name of a config that comes with snnbench."""
    path = Path(name)
    shipped = data_folder("configs") / f"{name}.toml"
    return shipped if not path.suffix and not path.exists() and shipped.exists() else path
