"""`snnbench run`: from a config file to a recording and its table."""

from typing import Annotated

import typer

from snnbench.cli.groups import Running, grouped, require_finished
from snnbench.cli.options import ConfigOption, config_path, default_threads
from snnbench.exits import Exit


@grouped
def run(
    config: ConfigOption,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cells and run none.")] = False,
    retry: Annotated[
        str | None,
        typer.Option("--retry", metavar="KIND,...", help="Run cells with these outcomes again, such as timeout,crash."),
    ] = None,
    *,
    options: Running,
) -> None:
    """Verify and time the cells of a config, and print the table.

    Every cell is recorded as it ends. After an interruption of any kind the same command runs the missing cells.
    """
    from snnbench.adapter.discovery import discover
    from snnbench.plan import config as configs
    from snnbench.plan.cell import cells
    from snnbench.recording import reading
    from snnbench.report.text.recording_tables import coverage, markdown
    from snnbench.run.progress import describe, say

    options.check()
    loaded = configs.load(config_path(config), options.changes, default_threads(options.executor))
    request = options.request(config=loaded, retry=_kinds(retry))
    if dry_run:
        works = request.of_shard(request.selected(discover(request.adapter_files)))
        plan = cells(works, request.config.protocol)
        typer.echo("\n".join(describe(cell) for cell in plan))
        say(f"{len(plan)} cells, {len(works)} of them different work")
        return

    recording, unfinished = options.run(request)
    typer.echo(markdown([recording]), nl=False)
    say(f"{coverage(recording.records)}; recorded in {recording.folder} ({', '.join(reading.FILES)})")
    require_finished(unfinished)
    if any(each.status == "failed" for each in recording.records):
        raise typer.Exit(Exit.FAILED_CELLS)


def _kinds(text: str | None) -> tuple[str, ...]:
    """The kinds of outcome in `--retry`. Raises BadParameter."""
    from snnbench.suggestions import unknown
    from snnbench.workloads.outcome import FAILURES, SKIPS

    kinds = tuple(kind.strip() for kind in text.split(",")) if text is not None else ()
    for kind in kinds:
        if kind not in {**FAILURES, **SKIPS}:
            raise typer.BadParameter(unknown("kind", kind, [*FAILURES, *SKIPS]), param_hint="--retry")
    return kinds
