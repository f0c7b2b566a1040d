"""Status: how far a recording is. Reading it changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from snnbench.plan.shard import Shard
from snnbench.recording import attempts, in_progress, reading, record
from snnbench.recording.record import Record


@dataclass(frozen=True, slots=True)
class Part:
    """A recording of a whole run, or of a shard with its job and the job's state. `planned` is None if unknown.

    `again` counts the disturbed cells that will be measured at least once more.
    """

    records: Sequence[Record]
    planned: int | None
    running: Sequence[Record]
    finished: bool
    shard: Shard | None = None
    job: str = ""
    state: str = ""
    again: int = 0
    closed: str = ""

    @property
    def done(self) -> int:
        """Cells that need not be run again."""
        return sum(not record.repeated(one.outcome) for one in self.records)

    @property
    def left_s(self) -> float | None:
        """Estimated seconds left, at the average time of its cells; None if unknown."""
        known = [one.wall_s for one in self.records if one.wall_s is not None]
        if self.finished or self.closed or self.planned is None or not known:
            return None
        return (max(0, self.planned - self.done) + self.again) * sum(known) / len(known)


def part(folder: Path, shard: Shard | None = None, job: str = "", state: str = "") -> Part:
    """The current state of the recording in `folder`."""
    there = reading.read(folder)
    running = in_progress.read(folder) if in_progress.runs(folder) else []
    planned = len(there.records) if there.finished and there.planned is None else there.planned
    again = 0 if there.finished or there.closed else attempts.due(there)
    return Part(there.records, planned, running, there.finished, shard, job, state, again, there.closed)
