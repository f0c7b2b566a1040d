"""The jobs of a Slurm run: a folder with the job and the recording of each shard.

    runs/2026-11-21_quick_slurm/
        config.json       the request, as in a recording, and its `shards`
        jobs.json         the last job of each shard
        1of3/ ...         the shards' recordings
        jobs/             submitted files, and the jobs' logs

The folder belongs to a request: until the run is finished, the same request finds it again.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from snnbench.cases.outcome import failed
from snnbench.files import lock
from snnbench.plan.shard import Shard, parse
from snnbench.recording import in_progress, reading
from snnbench.recording.reading import CONFIG, RECORDS, Recording
from snnbench.recording.record import Record, RecordingError
from snnbench.recording.writer import append, write_document, writing
from snnbench.run.progress import say
from snnbench.run.slurm import scheduler, submission
from snnbench.run.slurm.scheduler import State

ROOT = Path("runs")
LONGEST_RELEASE_S, RELEASE_LOOK_S = 15.0, 0.2
NUMBER = re.compile(r"\d+(_\d+)?")
JOBS, LOCK, SUBMITTED = "jobs.json", "lock", "jobs"


@dataclass(frozen=True, slots=True)
class Jobs:
    """A run's folder as read. `ids` maps each submitted shard to the number of its Slurm job."""

    folder: Path
    config: Mapping[str, Any]
    shards: tuple[Shard, ...]
    ids: Mapping[Shard, str]

    def recording(self, shard: Shard) -> Path:
        """The folder of a shard's recording."""
        return self.folder / f"{shard.index}of{shard.count}"

    def log(self, shard: Shard) -> Path:
        """The log of a shard's job."""
        return submission.log(self.folder / SUBMITTED, self.ids[shard])

    def recordings(self) -> list[Recording]:
        """The recordings of all shards that have begun."""
        folders = [self.recording(shard) for shard in self.shards]
        return [reading.read(folder) for folder in folders if (folder / RECORDS).is_file()]

    def finished(self, shard: Shard) -> bool:
        """Whether the shard's runner has completed its plan."""
        return bool(reading.document(self.recording(shard) / CONFIG).get("finished"))

    def states(self) -> dict[Shard, State]:
        """State of each shard's job; if Slurm has forgotten the job, its log tells the state. Raises SlurmError."""
        known = scheduler.states(set(self.ids.values()))
        return {shard: known.get(job) or scheduler.left_behind(self.log(shard)) for shard, job in self.ids.items()}


def read(folder: Path) -> Jobs:
    """The run in `folder`. Raises RecordingError."""
    if not is_run(folder):
        raise RecordingError(f"{folder}: no run here (no {CONFIG} and {JOBS})")
    config = reading.document(folder / CONFIG)
    shards = tuple(parse(text) for text in config.get("shards", []))
    try:
        ids = {parse(shard): job for shard, job in json.loads((folder / JOBS).read_text()).items()}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise RecordingError(f"{folder / JOBS}: {error}") from error
    if not (set(ids) <= set(shards) and all(isinstance(job, str) and NUMBER.fullmatch(job) for job in ids.values())):
        raise RecordingError(f"{folder / JOBS}: expected the number of a job, such as 12_3, for shards of the run")
    return Jobs(folder, config, shards, ids)


def is_run(folder: Path) -> bool:
    """Whether this is the folder of a run, and not a recording."""
    return (folder / CONFIG).is_file() and (folder / JOBS).is_file()


def create(folder: Path, config: Mapping[str, Any]) -> Jobs:
    """The run in `folder`, made if it is missing."""
    if not is_run(folder):
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_document(folder / JOBS, {})
        write_document(folder / CONFIG, config)
    return read(folder)


def remember_ids(jobs: Jobs, ids: Mapping[Shard, str]) -> Jobs:
    """Store the new jobs of these shards."""
    known = {**jobs.ids, **ids}
    write_document(jobs.folder / JOBS, {str(shard): known[shard] for shard in jobs.shards if shard in known})
    return replace(jobs, ids=known)


def update_config(jobs: Jobs, **facts: Any) -> Jobs:
    """Store facts in the run's config."""
    config = {**jobs.config, **facts}
    write_document(jobs.folder / CONFIG, config)
    return replace(jobs, config=config)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run's lock: one snnbench at a time submits and collects its jobs; others wait here."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / LOCK).open("w")
    with stream:
        if not lock(stream, wait=False):
            say(f"{folder}: waiting for another snnbench, which submits or collects its jobs")
            lock(stream)
        yield


def collect(jobs: Jobs, shard: Shard, state: State) -> list[Record]:
    """Record the cells that ran when the shard's job ended, as failed by its end."""
    folder = jobs.recording(shard)
    if not in_progress.read(folder):
        return []
    _wait_until_released(folder)
    reason = f"job {jobs.ids[shard]} ended while this ran: {state.name}"
    known = reading.read(folder)
    records = []
    with append(folder, known.config, known.machine) as writer:
        for draft in in_progress.read(folder):
            later = (other for other in (*known.records, *known.attempts) if other.started >= draft.started)
            if (draft.cell, draft.attempt) not in {(other.cell, other.attempt) for other in later}:
                kind = scheduler.kind(state, draft.settings.get("cells_before", 0) == 0)
                outcome = failed(kind, reason, scheduler=state.name)
                settings = {name: value for name, value in draft.settings.items() if name != "cells_before"}
                records.append(replace(draft, outcome=outcome, settings=settings))
                writer.add(records[-1])
            in_progress.remove(folder, draft.cell)
    return records


def _wait_until_released(folder: Path) -> None:
    """Wait until no process holds the recording: Slurm may report a job as ended while its processes still end."""
    deadline = time.monotonic() + LONGEST_RELEASE_S
    while in_progress.runs(folder) and time.monotonic() < deadline:
        time.sleep(RELEASE_LOOK_S)


def complaint(jobs: Jobs, shard: Shard, state: State) -> str:
    """Why a shard is not finished; "" if it is."""
    if jobs.finished(shard):
        return ""
    last_line = scheduler.last_line_of(jobs.log(shard))
    return f"shard {shard}: job {jobs.ids[shard]} {state}" + (
        f", and {jobs.log(shard)} ends: {last_line}" if last_line else ""
    )


def reopen(jobs: Jobs, shard: Shard) -> None:
    """Mark a shard's recording, if there is one, as unfinished, so that it can be continued."""
    folder = jobs.recording(shard)
    if (folder / RECORDS).is_file():
        with append(folder, reading.document(folder / CONFIG), {}) as writer:
            writer.finish(False)
