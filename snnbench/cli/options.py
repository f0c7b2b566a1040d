"""Options that several commands share."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snnbench import files
from snnbench.environments import Env
from snnbench.exits import Exit, UserError
from snnbench.suggestions import unknown

if TYPE_CHECKING:
    from snnbench.analysis.compare import Comparisons
    from snnbench.analysis.decision import Thresholds
    from snnbench.recording.reading import Recording


class Where(StrEnum):
    """Cells run on this machine, or as jobs of a cluster."""

    local = "local"
    slurm = "slurm"


class Unfinished(UserError):
    """A run ended without all of its cells; the message says why and what to do."""


class Unwritable(UserError):
    """A file or folder that the user named cannot be written; the message says what to do."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError into Unwritable."""
    try:
        yield
    except OSError as error:
        raise Unwritable(f"{path}: cannot be written ({error.strerror or error}); name another place") from error


def require_writable(*paths: Path | None) -> None:
    """Raise Unwritable, before any work, for a file that an option names and that cannot be written."""
    for path in filter(None, paths):
        with writing(path):
            files.try_file(path)


def named(path: Path | None) -> Path | None:
    """A place to write to. Raises BadParameter for -, which elsewhere means standard output."""
    if path is not None and str(path) == "-":
        raise typer.BadParameter("name a file or folder; without this option snnbench says where it writes")
    return path


def recording_folder(path: Path | None) -> Path | None:
    """A recording's folder. Raises BadParameter for one that holds recordings: a new one would hide them."""
    if (path := named(path)) and not (path / "records.jsonl").exists() and any(path.glob("*/records.jsonl")):
        raise typer.BadParameter(f"{path} holds recordings; name a folder in it, such as {path / 'NAME'}")
    return path


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


def axis_option(*names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel="In place of the config's; may be repeated")


ProfileOption = Annotated[
    list[str] | None,
    axis_option(
        "--profile",
        metavar="NAME",
        help="How the neuron resets: subtract (by subtraction), zero (to zero), or another profile.",
    ),
]
NirOption = Annotated[
    list[str] | None,
    axis_option(
        "--nir",
        metavar="FILE",
        help="Your network, a NIR graph, or the name of one that comes with snnbench. The config is then `nir`. Nodes: "
        "Input, Output, Affine, Linear, Scale, Conv1d, Conv2d, SumPool2d, AvgPool2d, Flatten, LIF, IF, CubaLIF, LI, "
        "CubaLI, Threshold, and graphs of these.",
    ),
]
StepOption = Annotated[list[float] | None, axis_option("--dt", metavar="SECONDS", help="The time step of a NIR graph.")]
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


GRAPHS = "nir"
"""The config for NIR graphs, in place of the config that a command takes if none is named."""


def config_path(name: str) -> Path:
    """The config file for the name of a config that comes with snnbench, or for a path. Raises BadParameter.

    A folder may have the name of such a config.
    """
    from snnbench.adapter.discovery import data_folder

    path = Path(name)
    shipped = {file.stem: file for file in sorted(data_folder("configs").glob("*.toml"))}
    if name not in shipped:
        if path.suffix or path.exists() or len(path.parts) > 1:
            return path
        raise typer.BadParameter(f"{unknown('config', name, shipped)}; or name a file", param_hint="--config")
    return shipped[name]


class ComparedPhase(StrEnum):
    """A phase that may have been timed."""

    train = "train"
    forward = "forward"
    backward = "backward"
    inference = "inference"
    epoch = "epoch"
    compute = "compute"
    loader = "loader"


PhaseOption = Annotated[
    list[ComparedPhase] | None, typer.Option("--phase", help="Only this phase; may be repeated. All if left out.")
]
TimeFloorOption = Annotated[
    float, typer.Option("--time-floor", metavar="SHARE", help="Ignore time changes below this: 0.05 is 5 %.")
]
AlphaOption = Annotated[float, typer.Option("--alpha", metavar="SHARE", help="Accepted false discovery rate.")]
FailOnOption = Annotated[
    str,
    typer.Option(
        "--fail-on", metavar="WORDS", help="End with exit code 6 if a comparison has one of these words: slower,failed."
    ),
]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Show the evidence for each word: trials, intervals, p and q.")
]


class TableFormat(StrEnum):
    """Tables (drawn in a terminal, Markdown in a pipe), and formats for other programs."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"


class ComparisonFormat(StrEnum):
    """A table for a terminal, Markdown, and formats for other programs."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"
    junit = "junit"


FormatOption = Annotated[ComparisonFormat, typer.Option("--format", help="How to print it.")]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", callback=named, help="Write to this file, not to standard output."),
]


def default_threads(executor: Where = Where.local) -> int | None:
    """The threads of a case that leaves them out: the CPUs of this machine; None for jobs on other machines."""
    from snnbench.machine.cpus import usable_cpus

    return usable_cpus() if executor is Where.local else None


def listed(text: str, known: Sequence[str], option: str) -> list[str]:
    """The words of a comma-separated list. Raises BadParameter, with the nearest known word, for an unknown one."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise typer.BadParameter(f"{option}: {unknown('word', word, known)}")
    return words


def thresholds_of(**given: float) -> "Thresholds":
    """The thresholds that a user gave. Raises BadParameter for an invalid one."""
    from snnbench.analysis.decision import Thresholds

    try:
        return Thresholds(**given)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def emit(text: str, output: Path | None) -> None:
    """Print the text, or write it to a file."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        save(text.encode(), output)


def save(content: bytes, output: Path) -> None:
    """Write a file, whole or not at all, and say so. Raises Unwritable."""
    with writing(output):
        files.replace_file(output, content)
    typer.echo(f"{output}: written", err=True)


def say_gaps(recordings: "Iterable[Recording]") -> None:
    """Say on standard error which recordings are not whole: many formats have no place for it."""
    from snnbench.report.wording import gaps

    for line in gaps(recordings):
        typer.echo(f"snnbench: {line}", err=True)


def exit_of(comparison: "Comparisons", failing: Collection[str]) -> int:
    """The exit code of a comparison: FOUND if it has any of these words. Prints their counts."""
    caught = {word: count for word, count in comparison.counts.items() if count and word in failing}
    if caught:
        typer.echo(f"snnbench: {', '.join(f'{count} {word}' for word, count in caught.items())}", err=True)
    return int(Exit.FOUND if caught else Exit.OK)
