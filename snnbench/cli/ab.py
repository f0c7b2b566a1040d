"""`snnbench ab`: one run with two sides that take turns, and a word for every time and peak."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snnbench.cli.groups import Running, grouped, require_finished
from snnbench.cli.options import (
    AlphaOption,
    ComparisonFormat,
    ConfigOption,
    ExplainOption,
    FailOnOption,
    FormatOption,
    PhaseOption,
    TimeFloorOption,
    Where,
    exit_of,
    listed,
    thresholds_of,
)
from snnbench.cli.screen import show
from snnbench.exits import Exit

if TYPE_CHECKING:
    from snnbench.plan.config import Config

MEMORY_TRIALS = 4
"""Fewest memory trials a side, if the config measures memory: one trial does not show how peaks vary."""
REPETITIONS = 30
"""Fewest repetitions of a phase: the more often the sides take turns, the better disturbances by the machine cancel."""
SideOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CHANGE",
        help="A change of this side, may be repeated: a pin such as snntorch==0.9.1, PATH@REVISION of a git "
        "repository, an adapter FILE.py, python=PATH, or VARIABLE=VALUE.",
    ),
]


@grouped
def ab(
    config: ConfigOption = "quick",
    base: SideOption = None,
    new: SideOption = None,
    trials: Annotated[int, typer.Option("--trials", min=4, max=10_000, help="Trials a side at most.")] = 12,
    *,
    options: Running,
    phase: PhaseOption = None,
    fail_on: FailOnOption = "",
    allow: Annotated[
        str, typer.Option("--allow", metavar="FACTS", help="contended: also count pairs that others disturbed.")
    ] = "",
    time_floor: TimeFloorOption = 0.05,
    alpha: AlphaOption = 0.05,
    explain: ExplainOption = False,
    form: FormatOption = ComparisonFormat.table,
) -> int:
    """Say whether NEW is slower than BASE, from one run in which they take turns, trial by trial.

    A side without a change runs with the pins of its adapters. A contender that neither side changes takes no part; if
    no side changes anything, all run against themselves. The run stops once every time has its word, or after --trials.
    """
    from snnbench.analysis import abtest
    from snnbench.analysis.comparisons import CONTENDED
    from snnbench.analysis.decision import WORDS
    from snnbench.plan import side as sides
    from snnbench.report.text import change_table
    from snnbench.run import local
    from snnbench.run.progress import say
    from snnbench.run.request import ABTest

    options.check()
    failing = listed(fail_on, WORDS, "--fail-on")
    allowed = listed(allow, (CONTENDED,), "--allow")
    thresholds = thresholds_of(time_floor=time_floor, alpha=alpha)
    both = {name: sides.parse(texts or []) for name, texts in ((sides.BASE, base), (sides.NEW, new))}
    stops_early = options.part is None and options.executor is Where.local
    loaded = _loaded(config, trials, options)
    rule = abtest.Rule(thresholds, tuple(phase or ()), allowed)
    request = options.request(config=loaded, test=ABTest(both, rule, stops_early))
    options.announce()
    if options.executor is Where.slurm:
        recording, unfinished = options.submit(request)
        require_finished(unfinished)
    else:
        recording = local.run(request)
    comparison = abtest.compare_sides(recording, rule, explain)
    if write := change_table.FORMATS.get(form):
        typer.echo(write(comparison, failing), nl=False)
    else:
        show(partial(change_table.report, comparison, explain), form)
    say(f"recorded in {recording.folder}")
    failed = any(one.status == "failed" for one in recording.records)
    return exit_of(comparison, failing) or int(Exit.FAILED_CELLS if failed else Exit.OK)


def _loaded(config: str, trials: int, options: Running) -> "Config":
    """The config with the trials of an A/B test, unless the user sets others. Raises ConfigError, BadParameter."""
    for setting in options.changes:
        if (key := setting.partition("=")[0].strip()) in ("protocol.trials", "protocol.remeasure"):
            why = "--trials says how many" if key == "protocol.trials" else "a disturbed pair is left out instead"
            raise typer.BadParameter(f"{key}: {why}", param_hint="--set")
    loaded = options.config(config, "quick", options.executor)
    protocol, given = loaded.protocol, {setting.partition("=")[0].strip() for setting in options.changes}
    if not protocol.phases:
        raise typer.BadParameter(
            f"{loaded.name} only verifies; name a config that times something", param_hint="--config"
        )
    # No cell is measured again: a disturbed pair is left out, and further pairs follow.
    changes: dict[str, Any] = {"trials": trials, "remeasure": 0, "until": "all"}
    if "protocol.repetitions" not in given:
        changes["repetitions"] = max(protocol.repetitions, REPETITIONS)
    if "protocol.memory_trials" not in given and protocol.memory_trials:
        changes["memory_trials"] = max(protocol.memory_trials, MEMORY_TRIALS)
    return loaded.with_protocol(**changes)
