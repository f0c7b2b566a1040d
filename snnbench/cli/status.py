"""`snnbench status`: how far a run is, from its records so far."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from snnbench.run.status import Part


def status(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A recording, or the folder of a run under runs/.")],
) -> None:
    """Show how far a run is: its cells and outcomes, the running cells, and the states of its Slurm jobs.

    It changes nothing and works at any time.
    """
    typer.echo("\n".join(lines(run)))


def lines(folder: Path) -> Iterator[str]:
    """A line for the whole, and one for each shard and for each cell that runs now."""
    from snnbench.run.estimate import format_duration
    from snnbench.run.slurm import jobs
    from snnbench.run.slurm.status import parts

    shards = parts(folder)
    planned = jobs.read(folder).config.get("planned") if jobs.is_run(folder) else shards[0].planned
    done = sum(shard.done for shard in shards)
    left_s = max((shard.left_s for shard in shards if shard.running and shard.left_s is not None), default=None)
    left = f", about {format_duration(left_s)} left" if left_s is not None else ""
    finished = ", finished" if all(shard.finished for shard in shards) else _closed(shards) or left
    yield f"{folder}: {done} of {planned or '?'} cells{_again(shards)}{finished}{_outcomes(shards)}"
    for shard in shards:
        if shard.shard:
            job = f"{_again([shard])}{_job(shard)}{_outcomes([shard])}"
            yield f"shard {shard.shard}: {shard.done} of {shard.planned or '?'} cells{job}"
        yield from _running(shard)


def _running(part: "Part") -> Iterator[str]:
    from snnbench.recording.record import recorded
    from snnbench.run.progress import describe

    for cell in part.running:
        yield f"  runs since {cell.started}: {describe(recorded(cell))}"


def _closed(shards: Sequence["Part"]) -> str:
    """Why the run was closed, as text; "" if it was not."""
    reasons = dict.fromkeys(shard.closed for shard in shards if shard.closed)
    return f", closed: {'; '.join(reasons)}" if reasons else ""


def _job(part: "Part") -> str:
    if part.finished:
        return ", finished"
    return f", job {part.job} {part.state}" if part.job else ", no job yet"


def _again(shards: Sequence["Part"]) -> str:
    """The number of cells to be measured again, as text; "" for none."""
    count = sum(one.again for one in shards)
    return f", {count} of them disturbed and to be measured again" if count else ""


def _outcomes(shards: Sequence["Part"]) -> str:
    """The counts of cells by kind of outcome, as text."""
    counts = Counter(one.outcome.kind or one.status for part in shards for one in part.records)
    listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"; {listed}" if listed else ""
