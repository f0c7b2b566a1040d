"""Status: how far a recording is, finished or not, or a run with a recording for each shard; nothing is changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from snnbench.plan.shard import Shard
from snnbench.recording import attempts, in_progress, record
from snnbench.recording.record import RECORDS, Record
from snnbench.run.slurm import jobs
from snnbench.run.slurm.scheduler import SlurmError, State


@dataclass(frozen=True, slots=True)
class Part:
    """A recording, of a whole run or of a shard; `planned` is None where it does not say.

    `again` counts the cells that others disturbed and that will be measured once more, at the least.
    """

    records: Sequence[Record]
    planned: int | None
    running: Sequence[Record]
    finished: bool
    shard: Shard | None = None
    job: str = ""
    state: State | None = None
    again: int = 0

    @property
    def done(self) -> int:
        """Cells that need not be run again."""
        return sum(not record.repeated(one.outcome) for one in self.records)

    @property
    def left_s(self) -> float | None:
        """How long it will take, if cells go on as on average; None where that is not known."""
        known = [one.wall_s for one in self.records if one.wall_s is not None]
        if self.finished or self.planned is None or not known:
            return None
        return (max(0, self.planned - self.done) + self.again) * sum(known) / len(known)


def parts(folder: Path) -> list[Part]:
    """The recording in `folder`, or those of the run that it is. Raises RecordingError, SlurmError."""
    if not jobs.is_run(folder):
        return [part(folder)]
    found = jobs.read(folder)
    try:
        states = found.states()
    except SlurmError as error:
        states = dict.fromkeys(found.ids, State(f"unknown: {error}"))
    return [_shard(found, one, states.get(one)) for one in found.shards]


def _shard(found: jobs.Jobs, one: Shard, state: State | None) -> Part:
    """One of a run's, begun or not."""
    folder, job = found.recording(one), found.ids.get(one, "")
    if not (folder / RECORDS).is_file():
        return Part([], None, [], False, one, job, state)
    return part(folder, one, job, state)


def part(folder: Path, shard: Shard | None = None, job: str = "", state: State | None = None) -> Part:
    """The recording in `folder`, as it is now."""
    there = record.read(folder)
    running = in_progress.read(folder) if in_progress.runs(folder) else []
    finished = bool(there.config.get("finished"))
    planned = there.config.get("planned", len(there.records) if finished else None)
    again = 0 if finished else attempts.due(there)
    return Part(there.records, planned, running, finished, shard, job, state, again)
