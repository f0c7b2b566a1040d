"""Options that several commands share."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnbench.library import data_folder
from snnbench.nearest import unknown

if TYPE_CHECKING:
    from snnbench.decision import Thresholds


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


class ComparedPhase(StrEnum):
    """A phase that may have been timed."""

    train = "train"
    forward = "forward"
    backward = "backward"
    inference = "inference"


PhaseOption = Annotated[
    list[ComparedPhase] | None, typer.Option("--phase", help="Only this phase; may be repeated. All if left out.")
]
TimeFloorOption = Annotated[
    float, typer.Option("--time-floor", metavar="SHARE", help="Ignore time changes below this: 0.05 is 5 %.")
]
AlphaOption = Annotated[float, typer.Option("--alpha", metavar="SHARE", help="Accepted false discovery rate.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, not to standard output.")
]


def listed(text: str, known: Sequence[str], option: str) -> list[str]:
    """The words of a list with commas. Raises a usage error that names the nearest of those known."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise typer.BadParameter(f"{option}: {unknown('word', word, known)}")
    return words


def thresholds_of(**given: float) -> "Thresholds":
    """What a change must pass, as a user gave it; what is wrong is a usage error."""
    from snnbench.decision import Thresholds

    try:
        return Thresholds(**given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def emit(text: str, output: Path | None) -> None:
    """Print, or write to a file."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
        typer.echo(f"{output}: written", err=True)
