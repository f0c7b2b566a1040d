"""Status of a run: its one recording, or the recording of each shard with the state of its Slurm job."""

from pathlib import Path

from snnbench.plan.shard import Shard
from snnbench.recording.reading import RECORDS
from snnbench.run.slurm import jobs
from snnbench.run.slurm.scheduler import SlurmError
from snnbench.run.status import Part, part


def parts(folder: Path) -> list[Part]:
    """The recording in `folder`, or the shards if it is a run's folder. Raises RecordingError, SlurmError."""
    if not jobs.is_run(folder):
        return [part(folder)]
    run = jobs.read(folder)
    try:
        states = {job: str(state) for job, state in run.states().items()}
    except SlurmError as error:
        states = dict.fromkeys(run.ids, f"unknown: {error}")
    return [_shard(run, shard, states.get(shard, "")) for shard in run.shards]


def _shard(run: jobs.Jobs, shard: Shard, state: str) -> Part:
    """One shard of a run, begun or not."""
    folder, job = run.recording(shard), run.ids.get(shard, "")
    if not (folder / RECORDS).is_file():
        return Part([], None, [], False, shard, job, state)
    return part(folder, shard, job, state)
