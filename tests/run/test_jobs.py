"""Tests of jobs' results and of their Slurm states, on folders and with a fake squeue that prints a test's text."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from snnbench.adapter.contender import Work
from snnbench.cases.outcome import FAILURES, Outcome, failed
from snnbench.plan.shard import Shard
from snnbench.recording import in_progress, record
from snnbench.recording.reading import read
from snnbench.recording.record import Record, RecordingError
from snnbench.recording.writer import append
from snnbench.run.slurm import jobs, scheduler, submission
from snnbench.run.slurm.jobs import Jobs
from snnbench.run.slurm.scheduler import SlurmError, State, UnknownOption
from snnbench.run.slurm.submit import resources
from tests.fakes import CASE, CORRECT, write
from tests.recordings import record as made
from tests.sweep import run_arguments, snnbench, write_config

ONE, TWO = Shard(1, 2), Shard(2, 2)
LOST = Outcome(status="failed", kind="lost", reason="gone")


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A squeue that prints the file `answer`. If a file `refusal` exists, it prints that as an error."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = f"#!/bin/sh\ncat {tmp_path}/answer\n[ -e {tmp_path}/refusal ] && cat {tmp_path}/refusal >&2 && exit 1\n:\n"
    (folder / "squeue").write_text(script)
    (folder / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    (tmp_path / "answer").write_text("")
    return tmp_path


@pytest.fixture
def run(tmp_path: Path) -> Jobs:
    """A run of two submitted shards."""
    config = {"identity": "x", "machine": "slurm", "shards": ["1/2", "2/2"], "planned": 4}
    return jobs.remember_ids(jobs.create(tmp_path / "runs" / "tiny", config), {ONE: "12_0", TWO: "12_1"})


def begun(run: Jobs, *records: Record, finished: bool = False) -> Path:
    """The first shard's recording, with these records."""
    folder = run.recording(ONE)
    with append(folder, {"identity": "y", "planned": 2}, {"model": "server"}) as writer:
        for added in records:
            writer.add(added)
        writer.finish(finished)
    return folder


def test_states_of_jobs_arrays_and_waiting_jobs_are_read() -> None:
    states = scheduler.parse("12|RUNNING|None\n13_0|PENDING|Resources\n13_1|NODE_FAIL|NodeDown\n\nnonsense\n")
    assert states == {
        "12": State("RUNNING", "None"),
        "13_0": State("PENDING", "Resources"),
        "13_1": State("NODE_FAIL", "NodeDown"),
    }
    assert [str(state) for state in states.values()] == ["RUNNING", "PENDING (Resources)", "NODE_FAIL"]
    assert [state.active for state in states.values()] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("TIMEOUT", "timeout"),
        ("OUT_OF_MEMORY", "oom-host"),
        ("NODE_FAIL", "lost"),
        ("BOOT_FAIL", "lost"),
        ("CANCELLED", "cancelled"),
        ("PREEMPTED", "cancelled"),
        ("FAILED", "crash"),
    ],
)
def test_end_of_a_job_gives_the_kind_of_its_cells_failure(run: Jobs, name: str, kind: str) -> None:
    folder = begun(run)
    in_progress.put(folder, made("a", outcome=LOST))
    (collected,) = jobs.collect(run, ONE, State(name))
    assert collected.outcome == Outcome(
        status="failed", kind=kind, reason=f"job 12_0 ended while this ran: {name}", scheduler=name
    )
    assert read(folder).records == [collected] and in_progress.read(folder) == []
    assert record.repeated(collected.outcome) is (kind in ("cancelled", "lost"))
    assert jobs.collect(run, ONE, State(name)) == [], "and only once"


def test_every_state_has_a_documented_kind() -> None:
    assert set(scheduler.KINDS.values()) <= FAILURES.keys()
    assert set(scheduler.STATE_BY_REASON.values()) <= scheduler.KINDS.keys()


def test_lost_worker_is_final_but_lost_node_is_repeated() -> None:
    assert not record.repeated(LOST)
    assert record.repeated(replace(LOST, scheduler="NODE_FAIL"))
    assert not record.repeated(failed("timeout", "no reply", scheduler="TIMEOUT"))
    assert record.repeated(failed("timeout", "no reply"), ("timeout",))


def test_cell_recorded_before_the_kill_keeps_its_record(run: Jobs) -> None:
    cell_record = made("a", started="2026-01-01T00:00:05+00:00")
    folder = begun(run, cell_record)
    in_progress.put(folder, made("a", outcome=LOST, started="2026-01-01T00:00:01+00:00"))
    assert jobs.collect(run, ONE, State("CANCELLED")) == []
    assert read(folder).records == [cell_record] and in_progress.read(folder) == []


def test_states_are_limited_to_the_requested_jobs(squeue: Path) -> None:
    (squeue / "answer").write_text("12_0|RUNNING|None\n12_1|TIMEOUT|TimeLimit\n12_2|RUNNING|None\n")
    assert scheduler.states({"12_0", "12_1"}) == {
        "12_0": State("RUNNING", "None"),
        "12_1": State("TIMEOUT", "TimeLimit"),
    }
    assert scheduler.states(set()) == {}


def test_unreachable_scheduler_is_not_a_lost_job(squeue: Path, run: Jobs) -> None:
    (squeue / "refusal").write_text("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    with pytest.raises(SlurmError, match=r"^squeue: .*Unable to contact slurm controller"):
        run.states()
    (squeue / "refusal").write_text("slurm_load_jobs error: Invalid job id specified\n")
    assert run.states() == {ONE: State("UNKNOWN"), TWO: State("UNKNOWN")}


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("slurmstepd: error: *** JOB 3 ON a CANCELLED AT 2026-11-21T17:00:26 DUE TO TIME LIMIT ***", "TIMEOUT"),
        ("slurmstepd: error: *** STEP 3.0 ON a CANCELLED AT 2026-11-21T17:00:26 ***\nbye", "CANCELLED"),
        ("x *** JOB 3 ON a CANCELLED AT 2026-11-21T17:00:26 DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***", "NODE_FAIL"),
        ("*** JOB 3 ON a CANCELLED AT 2026-11-21T17:00:26 DUE TO PREEMPTION ***", "PREEMPTED"),
        ("*** JOB 3 ON a CANCELLED AT 1 DUE TO JOB REQUEUE ***\n*** JOB 3 ON b CANCELLED AT 2 ***", "CANCELLED"),
        ("all was well", "UNKNOWN"),
    ],
)
def test_state_of_a_forgotten_job_comes_from_its_log(squeue: Path, run: Jobs, text: str, state: str) -> None:
    run.log(ONE).parent.mkdir()
    run.log(ONE).write_text(text)
    assert run.states()[ONE] == State(state)


def test_options_are_parsed_as_sbatch_options() -> None:
    given = ["partition=gpu", "--cpus-per-task=4", "exclusive", "gres=gpu:a100:1", "comment=a=b"]
    assert scheduler.options(given) == {
        "partition": "gpu",
        "cpus_per_task": "4",
        "exclusive": True,
        "gres": "gpu:a100:1",
        "comment": "a=b",
    }


@pytest.mark.parametrize("text", ["=1", "time=", "Time limit=1", "a\nb=1", "time=1\n#SBATCH --uid=0", ""])
def test_malformed_option_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UnknownOption, match=r"^--slurm: .*: expected an option of sbatch such as"):
        scheduler.options([text])


def test_reserved_option_is_refused() -> None:
    with pytest.raises(UnknownOption, match=r"^--slurm: array is set by snnbench itself"):
        scheduler.options(["array=0-9"])


def test_resources_of_a_task_follow_its_cells_or_the_user() -> None:
    cpu, gpu = (Work(replace(CASE, device=device, threads=3), "a", "default") for device in ("cpu", "cuda"))
    assert resources({}, [cpu]) == {"cpus_per_task": "3"}
    assert resources({"time": "5"}, [cpu, gpu]) == {"time": "5", "gpus_per_node": "1", "cpus_per_task": "3"}
    assert resources({"gres": "gpu:1", "exclusive": True}, [gpu]) == {"gres": "gpu:1", "exclusive": True}


def test_missing_submitit_or_slurm_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(submission, "find_spec", lambda name: name)
    with pytest.raises(SlurmError, match="no sbatch and squeue here"):
        submission.require()
    monkeypatch.setattr(submission, "find_spec", lambda name: None)
    with pytest.raises(SlurmError, match="pip install submitit"):
        submission.require()


def test_run_round_trip(run: Jobs) -> None:
    assert jobs.read(run.folder) == run
    assert jobs.is_run(run.folder) and not jobs.is_run(begun(run))


@pytest.mark.parametrize("text", ["[]", "{", '{"1/2": 12}', '{"1/2": "../12"}', '{"a": "12"}', '{"3/4": "12"}'])
def test_malformed_list_of_jobs_is_refused(run: Jobs, text: str) -> None:
    (run.folder / "jobs.json").write_text(text)
    with pytest.raises(RecordingError, match=r"jobs\.json: "):
        jobs.read(run.folder)


def test_shard_to_be_continued_is_not_finished(run: Jobs) -> None:
    begun(run, finished=True)
    assert run.finished(ONE) and not run.finished(TWO)
    jobs.reopen(run, ONE)
    jobs.reopen(run, TWO)
    assert not run.finished(ONE)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--shards", "2"], "only with --executor slurm"),
        (["--slurm", "time=5"], "only with --executor slurm"),
        (["--executor", "slurm", "--shard", "1/2"], "Slurm chooses"),
        (["--executor", "slurm", "--devices", "0"], "Slurm chooses"),
    ],
)
def test_inapplicable_options_are_refused(tmp_path: Path, options: list[str], line: str) -> None:
    config = write_config(tmp_path, ["good"])
    done = snnbench(tmp_path, *run_arguments(config, [write(tmp_path, CORRECT, "good")], *options))
    assert (done.returncode, done.stdout) == (2, "")
    assert line in done.stderr and len(done.stderr.splitlines()) == 1


def test_job_ids_have_their_own_file(run: Jobs) -> None:
    assert json.loads((run.folder / "jobs.json").read_text()) == {"1/2": "12_0", "2/2": "12_1"}


@pytest.mark.parametrize("state", ["TIMEOUT", "DEADLINE", "FAILED", "COMPLETED"])
def test_end_of_a_job_is_blamed_on_its_first_cell_only(state: str) -> None:
    """A job's cells together exceed its time, or the harness dies: that says nothing about the running cell."""
    assert scheduler.kind(State(state), first=True) == scheduler.KINDS[state] != "cancelled"
    assert scheduler.kind(State(state), first=False) == "cancelled"
    assert scheduler.kind(State("OUT_OF_MEMORY"), first=False) == "oom-host"
    assert scheduler.kind(State("NODE_FAIL"), first=False) == "lost"


def test_later_cell_of_an_ended_job_is_run_again(run: Jobs) -> None:
    folder = begun(run)
    in_progress.put(folder, made("a", outcome=LOST, settings={"cells_before": 3}))
    (collected,) = jobs.collect(run, ONE, State("TIMEOUT"))
    assert collected.outcome.kind == "cancelled" and collected.settings == {}
    assert record.repeated(collected.outcome)
