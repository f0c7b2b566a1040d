"""Tests of jobs' results and of their Slurm states, on folders and with a fake squeue that prints a test's text."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from snnbench.adapter.contender import Work
from snnbench.plan.shard import Shard
from snnbench.recording import in_progress, record
from snnbench.recording.record import Record, RecordingError, read
from snnbench.recording.writer import append
from snnbench.run.slurm import jobs, scheduler, submission
from snnbench.run.slurm.jobs import Jobs
from snnbench.run.slurm.scheduler import SlurmError, State, UnknownOption
from snnbench.run.slurm.submit import resources
from snnbench.workloads.outcome import FAILURES, Outcome
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
        for one in records:
            writer.add(one)
        writer.finish(finished)
    return folder


def test_states_are_read_of_jobs_arrays_and_those_that_wait() -> None:
    found = scheduler.parse("12|RUNNING|None\n13_0|PENDING|Resources\n13_1|NODE_FAIL|NodeDown\n\nnonsense\n")
    assert found == {
        "12": State("RUNNING", "None"),
        "13_0": State("PENDING", "Resources"),
        "13_1": State("NODE_FAIL", "NodeDown"),
    }
    assert [str(state) for state in found.values()] == ["RUNNING", "PENDING (Resources)", "NODE_FAIL"]
    assert [state.active for state in found.values()] == [True, True, False]


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
def test_a_state_in_which_a_job_ended_is_what_its_cell_failed_of(run: Jobs, name: str, kind: str) -> None:
    folder = begun(run)
    in_progress.put(folder, made("a", outcome=LOST))
    (found,) = jobs.collect(run, ONE, State(name))
    assert found.outcome == Outcome(
        status="failed", kind=kind, reason=f"job 12_0 ended while this ran: {name}", scheduler=name
    )
    assert read(folder).records == [found] and in_progress.read(folder) == []
    assert record.repeated(found.outcome) is (kind in ("cancelled", "lost"))
    assert jobs.collect(run, ONE, State(name)) == [], "and only once"


def test_every_state_has_a_kind_that_there_is() -> None:
    assert set(scheduler.KINDS.values()) <= FAILURES.keys()
    assert set(scheduler.SAID.values()) <= scheduler.KINDS.keys()


def test_a_lost_worker_is_a_result_and_a_lost_node_is_none() -> None:
    assert not record.repeated(LOST)
    assert record.repeated(LOST | {"scheduler": "NODE_FAIL"})
    assert not record.repeated({"kind": "timeout", "scheduler": "TIMEOUT"})
    assert record.repeated({"kind": "timeout"}, ("timeout",))


def test_a_cell_that_had_its_record_before_the_kill_keeps_it(run: Jobs) -> None:
    one = made("a", started="2026-01-01T00:00:05+00:00")
    folder = begun(run, one)
    in_progress.put(folder, made("a", outcome=LOST, started="2026-01-01T00:00:01+00:00"))
    assert jobs.collect(run, ONE, State("CANCELLED")) == []
    assert read(folder).records == [one] and in_progress.read(folder) == []


def test_slurm_s_answer_is_of_the_jobs_asked_for(squeue: Path) -> None:
    (squeue / "answer").write_text("12_0|RUNNING|None\n12_1|TIMEOUT|TimeLimit\n12_2|RUNNING|None\n")
    assert scheduler.states({"12_0", "12_1"}) == {
        "12_0": State("RUNNING", "None"),
        "12_1": State("TIMEOUT", "TimeLimit"),
    }
    assert scheduler.states(set()) == {}


def test_a_scheduler_that_does_not_answer_is_no_lost_job(squeue: Path, run: Jobs) -> None:
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
def test_a_job_that_slurm_forgot_is_known_by_its_log(squeue: Path, run: Jobs, text: str, state: str) -> None:
    run.log(ONE).parent.mkdir()
    run.log(ONE).write_text(text)
    assert run.states()[ONE] == State(state)


def test_options_are_those_of_sbatch() -> None:
    given = ["partition=gpu", "--cpus-per-task=4", "exclusive", "gres=gpu:a100:1", "comment=a=b"]
    assert scheduler.options(given) == {
        "partition": "gpu",
        "cpus_per_task": "4",
        "exclusive": True,
        "gres": "gpu:a100:1",
        "comment": "a=b",
    }


@pytest.mark.parametrize("text", ["=1", "time=", "Time limit=1", "a\nb=1", "time=1\n#SBATCH --uid=0", ""])
def test_what_is_no_option_is_one_line(text: str) -> None:
    with pytest.raises(UnknownOption, match=r"^--slurm: .*: expected an option of sbatch such as"):
        scheduler.options([text])


def test_what_snnbench_sets_itself_is_refused() -> None:
    with pytest.raises(UnknownOption, match=r"^--slurm: array is set by snnbench itself"):
        scheduler.options(["array=0-9"])


def test_a_task_gets_what_its_cells_need_unless_its_user_said() -> None:
    cpu, gpu = (Work(replace(CASE, device=device, threads=3), "a", "default") for device in ("cpu", "cuda"))
    assert resources({}, [cpu]) == {"cpus_per_task": "3"}
    assert resources({"time": "5"}, [cpu, gpu]) == {"time": "5", "gpus_per_node": "1", "cpus_per_task": "3"}
    assert resources({"gres": "gpu:1", "exclusive": True}, [gpu]) == {"gres": "gpu:1", "exclusive": True}


def test_without_submitit_or_slurm_the_line_says_what_to_get(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SlurmError, match="no sbatch and squeue here"):
        submission.require()
    monkeypatch.setattr(submission, "find_spec", lambda name: None)
    with pytest.raises(SlurmError, match=r"pip install 'snnbench\[slurm\]'"):
        submission.require()


def test_a_run_is_read_as_it_was_written(run: Jobs) -> None:
    assert jobs.read(run.folder) == run
    assert jobs.is_run(run.folder) and not jobs.is_run(begun(run))


@pytest.mark.parametrize("text", ["[]", "{", '{"1/2": 12}', '{"1/2": "../12"}', '{"a": "12"}', '{"3/4": "12"}'])
def test_what_is_no_list_of_jobs_is_refused(run: Jobs, text: str) -> None:
    (run.folder / "jobs.json").write_text(text)
    with pytest.raises(RecordingError, match=r"jobs\.json: "):
        jobs.read(run.folder)


def test_a_shard_to_be_continued_is_not_finished(run: Jobs) -> None:
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
def test_options_that_say_nothing_where_the_run_goes_are_refused(tmp_path: Path, options: list[str], line: str) -> None:
    config = write_config(tmp_path, ["good"])
    done = snnbench(tmp_path, *run_arguments(config, [write(tmp_path, CORRECT, "good")], *options))
    assert (done.returncode, done.stdout) == (2, "")
    assert line in done.stderr and len(done.stderr.splitlines()) == 1


def test_json_of_a_run_is_a_document_of_its_own(run: Jobs) -> None:
    assert json.loads((run.folder / "jobs.json").read_text()) == {"1/2": "12_0", "2/2": "12_1"}


@pytest.mark.parametrize("state", ["TIMEOUT", "DEADLINE", "FAILED", "COMPLETED"])
def test_only_the_first_cell_of_a_job_is_guilty_of_its_end(state: str) -> None:
    """A job's cells together exceed its time, or the harness dies: that says nothing about the running cell."""
    assert scheduler.kind(State(state), first=True) == scheduler.KINDS[state] != "cancelled"
    assert scheduler.kind(State(state), first=False) == "cancelled"
    assert scheduler.kind(State("OUT_OF_MEMORY"), first=False) == "oom-host"
    assert scheduler.kind(State("NODE_FAIL"), first=False) == "lost"


def test_a_cell_that_ran_after_others_is_run_again(run: Jobs) -> None:
    folder = begun(run)
    in_progress.put(folder, made("a", outcome=LOST, settings={"cells_before": 3}))
    (found,) = jobs.collect(run, ONE, State("TIMEOUT"))
    assert found.outcome.kind == "cancelled" and found.settings == {}
    assert record.repeated(found.outcome)
