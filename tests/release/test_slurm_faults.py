"""Tests of jobs of a real Slurm on this machine that are left, killed, lost, requeued and continued."""

import signal
from pathlib import Path

import pytest

from snnbench import checking
from snnbench.recording.reading import read
from tests.fakes import CORRECT, write
from tests.processes import within
from tests.slurm import Slurm
from tests.slurm_run import SLOW_S, Run
from tests.sweep import write_config
from tests.system.test_slurm import SIZES, assert_as_local, local, run, slurm

__all__ = ["local", "run", "slurm"]

pytestmark = pytest.mark.slurm


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
