"""`snnbench compare`: two recordings of the same work."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from snnbench.cli.exits import Exit
from snnbench.cli.options import AlphaOption, OutputOption, PhaseOption, TimeFloorOption, emit, listed, thresholds_of


class ComparisonFormat(StrEnum):
    """A table for a terminal, Markdown, or what another program reads."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    json = "json"
    junit = "junit"


def compare(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="A recording's folder.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A later one of the same config.")],
    phase: PhaseOption = None,
    fail_on: Annotated[
        str, typer.Option("--fail-on", metavar="WORDS", help="End with exit code 6 where a cell is any: slower,failed.")
    ] = "",
    allow: Annotated[
        str,
        typer.Option(
            "--allow", metavar="FACTS", help="Compare although these differ, or were disturbed: machine,contended."
        ),
    ] = "",
    time_floor: TimeFloorOption = 0.05,
    memory_floor: Annotated[
        float, typer.Option("--memory-floor", metavar="SHARE", help="Ignore memory changes below this: 0.01 is 1 %.")
    ] = 0.01,
    alpha: AlphaOption = 0.05,
    chance: Annotated[
        float, typer.Option("--chance", metavar="SHARE", help="What times differ by here with nothing changed.")
    ] = 0.0,
    detectable: Annotated[float | None, typer.Option("--detectable", hidden=True)] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each word rests on: trials, intervals, p and q.")
    ] = False,
    form: Annotated[ComparisonFormat, typer.Option("--format", help="How to print it.")] = ComparisonFormat.table,
    output: OutputOption = None,
) -> int:
    """Say of every time and peak whether NEW is slower, faster or the same, and by how much: above 1 is slower."""
    import gc

    from snnbench import compare as comparing
    from snnbench import compare_output, noise, record
    from snnbench.comparability import ALLOWABLE
    from snnbench.decision import WORDS

    if detectable is not None:
        raise typer.BadParameter("--detectable is called --chance now: what times differ by with nothing changed")
    failing = listed(fail_on, WORDS, "--fail-on")
    allowed = listed(allow, (*ALLOWABLE, comparing.CONTENDED), "--allow")
    thresholds = thresholds_of(time_floor=time_floor, memory_floor=memory_floor, alpha=alpha, chance=chance)
    gc.disable()  # to search what was read for garbage, which ends with the command, takes a quarter of its time
    older, newer = record.read(base), record.read(new)
    known = noise.known(str(newer.machine.get("model"))) if not chance else None
    limit = known.by_chance if known else None
    found = comparing.compare(older, newer, thresholds, phase or (), allowed, explain, limit)
    emit(compare_output.FORMATS[form](found, explain, failing), output)
    if output:
        typer.echo(compare_output.summary(found), err=True)
    if known:
        typer.echo(f"snnbench: changes too small for this machine ({known.recording}) are inconclusive", err=True)
    caught = {word: count for word, count in found.counts.items() if count and word in failing}
    if caught:
        typer.echo(f"snnbench: {', '.join(f'{count} {word}' for word, count in caught.items())}", err=True)
    return int(Exit.FOUND if caught else Exit.OK)
