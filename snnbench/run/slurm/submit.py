"""`snnbench run --executor slurm`: it submits shards as jobs and merges their recordings.

Waiting for jobs watches their recordings for new records, and polls Slurm now and then.
"""

import os
import shlex
import signal
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from types import FrameType

from snnbench import __version__
from snnbench.adapter.contender import Work
from snnbench.adapter.discovery import discover
from snnbench.cases.nodes import most_on_a_node
from snnbench.digest import digest
from snnbench.machine import gpus
from snnbench.plan.cell import Cell, cells
from snnbench.plan.config import Config
from snnbench.plan.shard import Shard, ShardError
from snnbench.recording import in_progress, merge, reading, record
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record, recorded
from snnbench.recording.writer import choose
from snnbench.run import local
from snnbench.run.executor import Progress
from snnbench.run.local import require_place, require_room
from snnbench.run.preparation import prepare
from snnbench.run.progress import say, shown
from snnbench.run.request import RunRequest
from snnbench.run.setup import RunContext, Setup
from snnbench.run.slurm import jobs, scheduler, submission
from snnbench.run.slurm.jobs import Jobs
from snnbench.run.slurm.scheduler import SlurmError, State, UnknownOption

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


KILLED_STATUS = 128 + signal.SIGTERM


def perform(request: RunRequest) -> None:
    """Record the shard of a request. Its paths are absolute, its environments exist, and nothing is fetched here.

    At SIGTERM the process ends without a record of the running cell: only Slurm knows whether the job hit its time
    limit, lost its node or was cancelled. submitit's signal handlers are removed.
    """
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # a warning before the end, for programs that checkpoint
    os.environ["UV_OFFLINE"] = "1"
    local.run(request)


def _end(signal_number: int, frame: FrameType | None) -> None:
    raise SystemExit(KILLED_STATUS)


MOST_SHARDS = 16
"""Most shards of a run, unless the user asks for more."""
GPU_OPTIONS = ("gres", "gpus", "gpus_per_node", "gpus_per_task", "gpus_per_socket", "tres_per_task")
CPU_OPTIONS = ("cpus_per_task", "cpus_per_gpu", "exclusive")


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """The works of a run and their setups, on the machine that submits them."""

    works: list[Work]
    setups: dict[str, Setup]
    config: Config

    def cells(self, shard: Shard) -> list[Cell]:
        """The cells of a shard."""
        return cells(shard.of(self.works), self.config.protocol, list(self.setups))

    def lacks(self, run: Jobs, shard: Shard, retry: Collection[str] = ()) -> bool:
        """Whether a shard has cells left to run, by their keys on the machine that began it."""
        folder = run.recording(shard)
        if not (folder / reading.RECORDS).is_file() or not run.finished(shard):
            return True
        there = reading.read(folder)
        here = RunContext(self.setups, self.config.protocol, str(there.named_by), 0)
        done = {one.cell for one in there.records if not record.repeated(one.outcome, retry)}
        return any(here.key(cell) not in done for cell in self.cells(shard))


def run_jobs(request: RunRequest, shards: int | None, options: dict[str, str | bool]) -> tuple[Recording, list[str]]:
    """Submit the missing shards of a run, wait, and merge; returns the recording and why shards are unfinished.

    `shards` is their number, None for one per case up to MOST_SHARDS; `options` are sbatch's. Raises SlurmError, and
    UnknownOption for options that do not fit the cases.
    """
    submission.require()
    adapters = discover(request.adapter_files)
    selected = request.selected(adapters)
    cuda = gpus.has_cuda() or any(work.case.device.startswith("cuda") for work in selected)
    works = request.works(adapters, cuda)
    requested = resources(options, works)
    require_place(request)
    run = open_run(request, shards, works)
    status = f"snnbench status {shlex.quote(str(run.folder))}"
    say(f"{run.folder}: {len(run.shards)} shards; {status} tells how far they are")
    plan = ShardPlan(works, prepare(request, works, adapters, cuda), request.config)
    with jobs.locked(run.folder):
        run = submit_missing(jobs.read(run.folder), plan, replace(request, cuda=cuda), requested)
    tails = [Tail(run.recording(shard)) for shard in run.shards]
    left = missing(run, plan, request.retry)
    there = [one.outcome for recording in run.recordings() for one in recording.records]
    if failed := request.retries(one for one in there if not record.repeated(one, request.retry)):
        say(f"{run.folder}: {len(there)} cells are there{failed}")
    try:
        with shown(left) as progress:
            states = wait(run, tails, left, progress)
    except KeyboardInterrupt:
        say(f"{run.folder}: the jobs go on; look: {status}; go on: the same command;")
        say(f"cancel: scancel {' '.join(sorted({job.split('_')[0] for job in run.ids.values()}))}")
        raise
    with jobs.locked(run.folder):
        collect_ended(run, states)
        unfinished = [jobs.complaint(run, shard, state) for shard, state in states.items()]
        return merge_parts(run, request, unfinished), [line for line in unfinished if line]


def open_run(request: RunRequest, shards: int | None, works: Sequence[Work]) -> Jobs:
    """The run of this request: the one under way, or a new one."""
    resolved, only, test = request.config.resolved(), list(request.only) or None, request.test
    if request.fresh and request.output:
        require_room(request.output)
    identity = digest(["slurm", resolved, only, request.env.value, *([test.texts] if test else [])])
    folder = choose(jobs.ROOT, request.config.name, identity, "slurm", date.today(), request.reuse)
    cases = len(dict.fromkeys(work.case for work in works))
    count = min(cases, MOST_SHARDS) if shards is None else shards
    if count > cases:
        raise ShardError(f"--shards {count}: there are {cases} cases, and a shard has one at the least")
    header = {
        "snnbench": __version__,
        "config": resolved,
        "only": only,
        "identity": identity,
        "machine": "slurm",
        "planned": len(cells(works, request.config.protocol, request.sides)),
        "shards": [str(Shard(index, count)) for index in range(1, count + 1)],
    }
    run = jobs.create(folder, header)
    if shards not in (None, len(run.shards)):
        raise ShardError(f"--shards {count}: {folder} has {len(run.shards)}; leave it out, or start with --fresh")
    return run


def submit_missing(run: Jobs, plan: ShardPlan, request: RunRequest, options: dict[str, str | bool]) -> Jobs:
    """Collect the cells of ended jobs, and submit shards that lack cells and have no active job."""
    states = run.states()
    collect_ended(run, states)
    active = [shard for shard, state in states.items() if state.active and not run.finished(shard)]
    if active:
        say(f"{len(active)} jobs wait or run already: {', '.join(run.ids[shard] for shard in active)}")
    lacking = [shard for shard in run.shards if shard not in active and plan.lacks(run, shard, request.retry)]
    if not lacking:
        return run
    for shard in lacking:
        jobs.reopen(run, shard)
    files = tuple(path.absolute() for path in request.adapter_files)
    whole = replace(request, adapter_files=files, fresh=False, devices=None)
    parts = [replace(whole, shard=shard, output=run.recording(shard).absolute()) for shard in lacking]
    name = f"snnbench-{request.config.name}"
    ids = submission.submit(perform, parts, run.folder / jobs.SUBMITTED, name, options)
    say(f"submitted {len(lacking)} of {len(run.shards)} shards: job {', '.join(ids)}")
    return jobs.update_config(jobs.remember_ids(run, dict(zip(lacking, ids, strict=True))), finished=False)


def resources(options: dict[str, str | bool], works: Sequence[Work]) -> dict[str, str | bool]:
    """sbatch's options. Unless the user set them, adds GPUs if cells need any, and CPUs for the widest cell, per node.

    Raises UnknownOption if no case has ranks for all nodes.
    """
    chosen, nodes = dict(options), scheduler.nodes(options)
    if nodes > (most := max(work.case.processes for work in works)):
        devices = "device" if most == 1 else "devices"
        raise UnknownOption(f"--slurm: nodes={nodes}: no case has more than {most} {devices}, so nodes would be idle")
    if any(work.case.device.startswith("cuda") for work in works) and not set(chosen) & set(GPU_OPTIONS):
        chosen["gpus_per_node"] = str(max(most_on_a_node(work.case.processes, nodes) for work in works))
    if not set(chosen) & set(CPU_OPTIONS):
        chosen["cpus_per_task"] = str(max(work.case.cpus(nodes) for work in works))
    return chosen


def missing(run: Jobs, plan: ShardPlan, retry: Collection[str]) -> list[Cell]:
    """The cells of unfinished shards that have no record yet."""
    done = {
        recorded(one)
        for recording in run.recordings()
        for one in recording.records
        if not record.repeated(one.outcome, retry)
    }
    unfinished = [shard for shard in run.shards if not run.finished(shard)]
    return [cell for shard in unfinished for cell in plan.cells(shard) if cell not in done]


def collect_ended(run: Jobs, states: dict[Shard, State]) -> None:
    """Record the cells that ran when their jobs ended, and print them."""
    for shard, state in states.items():
        if not state.active and not run.finished(shard):
            for lost in jobs.collect(run, shard, state):
                say(f"shard {shard}: {lost.label} trial {lost.trial}: {lost.outcome.reason}")


def merge_parts(run: Jobs, request: RunRequest, complaints: Sequence[str]) -> Recording:
    """Merge the shards that have a recording into the recording of the run. Raises SlurmError if no shard has one."""
    parts = run.recordings()
    if not parts:
        raise SlurmError(f"{run.folder}: no job recorded anything; {'; '.join(filter(None, complaints))}")
    if request.output:
        folder = request.output
    elif "merged" in run.config:
        folder = Path(run.config["merged"])
    else:
        first = parts[0].config
        folder = choose(
            Path("results"), request.config.name, first["whole"], first["machine"], date.today(), reuse="none"
        )
    run = jobs.update_config(run, merged=str(folder))
    whole = merge.merge(parts, folder)
    jobs.update_config(run, finished=whole.finished)
    return whole
