"""Waiting for jobs: it watches their recordings for new records, and polls Slurm now and then."""

import time
from collections.abc import Collection, Sequence
from pathlib import Path

from snnbench.plan.cell import Cell
from snnbench.plan.shard import Shard
from snnbench.recording import in_progress, reading, record
from snnbench.recording.record import Record, recorded
from snnbench.run.executor import Progress
from snnbench.run.progress import say
from snnbench.run.slurm.jobs import Jobs
from snnbench.run.slurm.scheduler import SlurmError, State

LOOK_EVERY_S = 2.0
"""Seconds between looks at recordings: nothing is timed on this machine."""
ASK_EVERY_S = 10.0
"""Seconds between requests to Slurm: other users wait for the scheduler, too."""


class Tail:
    """The new records of a recording since the last look."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._path = folder, folder / reading.RECORDS
        self._offset = self._path.stat().st_size if self._path.is_file() else 0

    def records(self) -> list[Record]:
        """New records with complete lines."""
        if not self._path.is_file():
            return []
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        records = (record.parse(line, self.folder) for line in whole.decode(errors="replace").split("\n"))
        return [one for one in records if one is not None]


def wait(run: Jobs, tails: Sequence[Tail], left: Collection[Cell], progress: Progress) -> dict[Shard, State]:
    """Report ends of the cells `left` to `progress` until no job is active; returns the state of each shard's job."""
    waiting, states, asked_at, answers = set(left), run.states(), time.monotonic(), True
    while True:
        unfinished = [shard for shard in run.ids if not run.finished(shard)]
        if unfinished and time.monotonic() - asked_at >= ASK_EVERY_S:
            try:
                states, asked_at, answers = run.states(), time.monotonic(), True
            except SlurmError as error:
                if answers:
                    say(f"{error}; its last answer counts until then")
                asked_at, answers = time.monotonic(), False
        ended = [record_ for tail in tails for record_ in tail.records() if recorded(record_) in waiting]
        for record_ in ended:
            waiting.discard(recorded(record_))
            progress.end(recorded(record_), record_)
        if ended or len(waiting) == len(left):
            _show_next(tails, progress)
        if not any(states[shard].active for shard in unfinished):
            return states
        time.sleep(LOOK_EVERY_S)


def _show_next(tails: Sequence[Tail], progress: Progress) -> None:
    """Show one of the running cells."""
    for tail in tails:
        for draft in in_progress.read(tail.folder)[:1]:
            progress.start(recorded(draft))
            return
