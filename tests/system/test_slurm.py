"""Tests of runs as jobs of a real Slurm on this machine: killed, lost, requeued, left and continued."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from snnbench.recording.reading import read
from snnbench.recording.record import Record
from tests.fakes import CORRECT, write
from tests.processes import within
from tests.slurm import Slurm, running
from tests.slurm_run import SLOW_S, Run
from tests.sweep import run_arguments, snnbench, write_config

pytestmark = pytest.mark.slurm

SIZES = "[16, 20, 24]"
CELLS = 12
WAITING = f"""
import os, time
from pathlib import Path

folder = Path(__file__).parent
with (folder / "pids").open("a") as file:
    file.write(f"{{os.getpid()}}\\n")
until = time.monotonic() + 60
is_third = (folder / "pids").read_text().split().index(str(os.getpid())) == 2
while is_third and time.monotonic() < until and not (folder / "go").exists():
    time.sleep(0.01)
{CORRECT}
"""
"""A fake. Its workers note their pids, and its third worker first waits for a file."""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A Slurm without jobs."""
    with running(tmp_path_factory.mktemp("slurm")) as started:
        yield started


def arguments(folder: Path) -> list[str | Path]:
    """`run` of 2 fakes, 3 cases and 2 trials."""
    adapters = [write(folder, WAITING, "slow"), write(folder, CORRECT, "quick")]
    config = write_config(folder, ["slow", "quick"], neurons=SIZES, trials=2, memory_trials=0)
    return run_arguments(config, adapters)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of a run without Slurm."""
    folder = tmp_path_factory.mktemp("local")
    (folder / "go").touch()
    assert snnbench(folder, *arguments(folder), "-o", "recording").returncode == 0
    return folder / "recording"


@pytest.fixture
def run(slurm: Slurm, tmp_path: Path) -> Iterator[Run]:
    """A run with a shard for each case, in which one cell waits."""
    started = Run(tmp_path, slurm, arguments(tmp_path))
    yield started
    if started.process is not None and started.process.poll() is None:
        started.process.kill()
        started.process.wait()
    if active := [job for job, state in started.jobs.items() if state in ("PENDING", "RUNNING", "COMPLETING")]:
        slurm.say("scancel", *active)
        assert within(SLOW_S, lambda: not {"RUNNING", "COMPLETING"} & set(slurm.states().values()))
    assert within(SLOW_S, slurm.ready)


def cells(records: list[Record]) -> list[tuple[Any, ...]]:
    """The cells and their outcomes."""
    return sorted((one.cell, one.status, one.outcome.verdict, one.outcome.kind) for one in records)


def assert_as_local(run: Run, local: Path) -> None:
    """The merged recording has the cells and verdicts of a run without Slurm, and is sound."""
    assert cells(run.records) == cells(read(local).records) and len(run.records) == CELLS
    (merged,) = (run.folder / "results").glob("*")
    assert checking.check(merged) == []


def test_shards_become_jobs_and_one_recording(run: Run, local: Path) -> None:
    run.go()
    status, messages = run.whole("--slurm", "time=5")
    assert status == 0, messages
    assert sorted(run.jobs.values()) == ["COMPLETED"] * 3, "an array job with a task for each case"
    assert f"[{CELLS}/{CELLS}]" in messages and "submitted 3 of 3 shards" in messages
    assert_as_local(run, local)
    (folder,) = (run.folder / "runs").glob("*")
    assert run.say("status", folder).splitlines()[0].endswith(f": {CELLS} of {CELLS} cells, finished; {CELLS} measured")
    assert not list(folder.glob("*/*.running"))


def test_interrupt_leaves_jobs_and_the_same_command_attaches(run: Run, local: Path) -> None:
    started = run.start("--shards", "2")
    assert run.waits()
    (folder,) = (run.folder / "runs").glob("*")
    status_text = run.say("status", folder)
    job, shard = run.at()
    assert f"shard {shard}: " in status_text and f"job {job} RUNNING" in status_text and "  runs since " in status_text
    started.send_signal(signal.SIGINT)
    status, messages = run.end()
    assert status == 130
    assert (
        f"snnbench status {folder.relative_to(run.folder)}" in messages and f"scancel {job.split('_')[0]}" in messages
    )
    assert set(run.jobs.values()) <= {"RUNNING", "COMPLETED"} and "RUNNING" in run.jobs.values()
    run.start()
    messages = run.reads("wait or run already")
    run.go()
    status, further = run.end()
    assert status == 0, further
    assert "submitted" not in messages + further
    assert len(run.jobs) == 2
    assert_as_local(run, local)


def test_cell_of_a_cancelled_job_is_run_again_alone(run: Run, local: Path) -> None:
    run.start()
    assert run.waits()
    job, shard = run.at()
    run.slurm.say("scancel", job)
    status, messages = run.end()
    assert (status, "not finished; the same command runs the missing cells" in messages) == (1, True), messages
    assert f"shard {shard}: job {job} CANCELLED" in messages
    (cancelled,) = [one for one in run.records if one.status == "failed"]
    assert (cancelled.outcome.kind, cancelled.outcome.scheduler) == ("cancelled", "CANCELLED")
    before = len(run.jobs)
    status, messages = run.whole()
    assert status == 0, messages
    assert len(run.jobs) == before + 1 and "submitted 1 of 3 shards" in messages
    assert_as_local(run, local)


def test_cell_of_a_lost_node_is_run_again(run: Run, local: Path) -> None:
    run.start("--slurm", "no-requeue")
    assert run.waits()
    job, _ = run.at()
    run.slurm.lose(run.slurm.node_of(job))
    status, messages = run.end()
    assert status == 1 and f"job {job} NODE_FAIL" in messages, messages
    lost = [one for one in run.records if one.outcome.scheduler == "NODE_FAIL"]
    assert {one.outcome.kind for one in lost} == {"lost"} and lost
    assert run.whole()[0] == 0
    assert_as_local(run, local)


def test_requeued_job_continues_its_shard(run: Run, local: Path) -> None:
    run.start()
    assert run.waits()
    job, _ = run.at()
    run.slurm.say("scontrol", "requeue", job)
    assert within(SLOW_S, lambda: run.jobs[job] == "PENDING")
    run.go()
    status, messages = run.end()
    assert status == 0, messages
    assert len(run.jobs) == 3, "nothing was submitted again"
    (log,) = (run.folder / "runs").glob(f"*/jobs/{job}_0_log.err")
    assert "DUE TO JOB REQUEUE" in log.read_text()
    assert_as_local(run, local)


def test_ab_test_on_shards_is_one_test(slurm: Slurm, tmp_path: Path) -> None:
    adapter = write(tmp_path, CORRECT, "lib")
    config = write_config(tmp_path, ["lib"], neurons="[16, 24]", memory_trials=0)
    words = ["ab", "--config", config, "--env", "current", "--adapter", adapter, "--new", "SPECIAL=1", "--trials", "4"]
    status, messages = Run(tmp_path, slurm, words).whole("--slurm", "time=5")
    assert status == 0, messages
    assert "submitted 2 of 2 shards" in messages and "[16/16]" in messages
    (merged,) = (tmp_path / "results").glob("*")
    recording = read(merged)
    assert {(one.side, one.trial) for one in recording.records} == {(s, t) for s in ("base", "new") for t in range(4)}
    assert recording.config["sides"] == {"base": [], "new": ["SPECIAL=1"]} and not recording.config["stops_early"]
    assert checking.check(merged) == []


def test_invalid_job_option_is_one_line(run: Run) -> None:
    status, messages = run.whole("--slurm", "partition=none")
    assert status == 1
    assert messages.splitlines()[-1].startswith("snnbench: sbatch: "), messages
    assert "invalid partition" in messages.splitlines()[-1]
    assert run.jobs == {}


@pytest.mark.libraries
def test_real_libraries_survive_a_cancelled_job_and_a_lost_node(slurm: Slurm, tmp_path: Path) -> None:
    """12 cells over 3 shards. The same command repeats the lost cells; cells and verdicts then equal one machine's."""
    libraries = ["torch-loop/unbind", "sinabs"]
    config = write_config(tmp_path, libraries, neurons=SIZES, trials=2, memory_trials=0, timeout_seconds=60.0)
    run = Run(tmp_path, slurm, ["run", "--config", config, "--set", 'protocol.phases=["train"]'])
    for name in ("SNNBENCH_HOME", "UV_OFFLINE"):
        del run.environment[name]
    run.start("--slurm", "no-requeue", "--slurm", "cpus_per_task=4")
    assert within(SLOW_S, lambda: bool(run.running()))
    (cancelled,) = list(run.running())[:1]
    slurm.say("scancel", cancelled)
    assert within(SLOW_S, lambda: bool(run.running() - {cancelled}))
    (lost,) = list(run.running() - {cancelled})[:1]
    slurm.lose(slurm.node_of(lost))
    status, messages = run.end()
    assert status == 1 and f"job {cancelled} CANCELLED" in messages and f"job {lost} NODE_FAIL" in messages, messages
    status, messages = run.whole()
    assert status == 0, messages
    run.say(*run.arguments, "-o", "local")
    assert_as_local(run, tmp_path / "local")
