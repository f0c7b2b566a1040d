"""`snnbench status`: how far a run is, from what it has recorded so far."""

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
    """Show how far a run is, finished or under way: cells, how they ended, what runs now, and Slurm's word on its jobs.

    It changes nothing, and may be given at any time.
    """
    typer.echo("\n".join(lines(run)))


def lines(folder: Path) -> Iterator[str]:
    """A line for the whole, and one for each shard and for each cell that runs now."""
    from snnbench.run.estimate import spoken
    from snnbench.run.slurm import jobs
    from snnbench.run.slurm.status import parts

    found = parts(folder)
    planned = jobs.read(folder).config.get("planned") if jobs.is_run(folder) else found[0].planned
    done = sum(one.done for one in found)
    left_s = max((one.left_s for one in found if one.running and one.left_s is not None), default=None)
    left = f", about {spoken(left_s)} left" if left_s is not None else ""
    finished = ", finished" if all(one.finished for one in found) else left
    yield f"{folder}: {done} of {planned or '?'} cells{_again(found)}{finished}{_outcomes(found)}"
    for one in found:
        if one.shard:
            job = f"{_again([one])}{_job(one)}{_outcomes([one])}"
            yield f"shard {one.shard}: {one.done} of {one.planned or '?'} cells{job}"
        yield from _running(one)


def _running(one: "Part") -> Iterator[str]:
    from snnbench.recording.record import recorded
    from snnbench.run.progress import describe

    for cell in one.running:
        yield f"  runs since {cell.started}: {describe(recorded(cell))}"


def _job(one: "Part") -> str:
    if one.finished:
        return ", finished"
    return f", job {one.job} {one.state}" if one.job else ", no job yet"


def _again(found: Sequence["Part"]) -> str:
    """How many cells will be measured again, if any."""
    count = sum(one.again for one in found)
    return f", {count} of them disturbed and to be measured again" if count else ""


def _outcomes(found: Sequence["Part"]) -> str:
    """How cells ended, in the words for it."""
    counts = Counter(one.outcome.get("kind", one.status) for part in found for one in part.records)
    said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"; {said}" if said else ""
