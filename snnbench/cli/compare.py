"""`snnbench compare`: it compares two recordings of the same work, or the two sides of one recording."""

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snnbench.cli.options import (
    AlphaOption,
    ComparisonFormat,
    ExplainOption,
    FailOnOption,
    FormatOption,
    OutputOption,
    PhaseOption,
    TimeFloorOption,
    emit,
    exit_of,
    listed,
    require_writable,
    say_gaps,
    thresholds_of,
)
from snnbench.cli.screen import show

if TYPE_CHECKING:
    from snnbench.analysis.compare import Comparisons
    from snnbench.analysis.decision import Thresholds


def compare(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="A recording's folder.")],
    new: Annotated[
        Path | None,
        typer.Argument(
            metavar="[NEW]",
            help="A later recording of the same config; omit it if BASE is a recording of `snnbench ab`.",
        ),
    ] = None,
    phase: PhaseOption = None,
    fail_on: FailOnOption = "",
    allow: Annotated[
        str,
        typer.Option(
            "--allow",
            metavar="FACTS",
            help="Compare even if these differ, were disturbed or moved: machine,contended,drift.",
        ),
    ] = "",
    time_floor: TimeFloorOption = 0.05,
    memory_floor: Annotated[
        float, typer.Option("--memory-floor", metavar="SHARE", help="Ignore memory changes below this: 0.01 is 1 %.")
    ] = 0.01,
    alpha: AlphaOption = 0.05,
    explain: ExplainOption = False,
    form: FormatOption = ComparisonFormat.table,
    output: OutputOption = None,
) -> int:
    """Say of every time and peak whether NEW is slower, faster or the same, and by how much: above 1 is slower.

    This is for history: between two recordings the machine may have changed. `snnbench ab` gives a verdict.
    """
    import gc

    from snnbench.analysis import compare as comparing
    from snnbench.analysis.comparability import ALLOWABLE
    from snnbench.analysis.comparisons import CONTENDED
    from snnbench.analysis.decision import WORDS
    from snnbench.report.text import change_table

    failing = listed(fail_on, WORDS, "--fail-on")
    allowed = listed(allow, (*ALLOWABLE, CONTENDED, comparing.DRIFT), "--allow")
    thresholds = thresholds_of(time_floor=time_floor, memory_floor=memory_floor, alpha=alpha)
    require_writable(output)
    gc.disable()  # collecting garbage among the records takes a quarter of the time, and the command ends anyway
    comparison = _compared(base, new, thresholds, phase or (), allowed, explain)
    if write := change_table.FORMATS.get(form):
        emit(write(comparison, failing), output)
    else:
        show(partial(change_table.report, comparison, explain), form, output)
    if output:
        typer.echo(change_table.summary(comparison), err=True)
    return exit_of(comparison, failing)


def _compared(
    base: Path,
    new: Path | None,
    thresholds: "Thresholds",
    phases: Collection[str],
    allowed: Collection[str],
    explained: bool,
) -> "Comparisons":
    from snnbench.analysis import compare as comparing
    from snnbench.analysis.abtest import Rule, compare_sides
    from snnbench.analysis.decision import Thresholds
    from snnbench.recording import reading

    older = reading.read(base)
    if new is None:
        say_gaps([older])
        rule = Rule(thresholds, tuple(phases), allowed)
        return compare_sides(older, None if rule == Rule(Thresholds(), (), []) else rule, explained)
    newer = reading.read(new)
    say_gaps([older, newer])
    return comparing.compare(older, newer, thresholds, phases, allowed, explained)
