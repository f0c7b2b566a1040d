"""Tests of `snnbench status` on recordings and runs, and of the marks that it reads."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from snnbench.cases.outcome import Outcome
from snnbench.cli.status import lines
from snnbench.plan.shard import Shard
from snnbench.recording import in_progress, record
from snnbench.recording.record import RecordingError
from snnbench.recording.writer import append
from snnbench.run.slurm import jobs
from snnbench.run.slurm.status import parts
from tests.processes import within
from tests.recordings import failed
from tests.recordings import record as made
from tests.run.test_interruption import Run, run
from tests.sweep import recordings, snnbench

__all__ = ["run"]

RUNNING = made("b", trial=1, outcome=Outcome(status="failed", kind="lost", reason="gone"), started="2026-01-01T00:00")


def write(folder: Path, *cells: record.Record, **about: object) -> Path:
    with append(folder, {"identity": "x", **about}, {"model": "server"}) as writer:
        for added in cells:
            writer.add(added)
    return folder


def test_status_lists_running_cells_until_the_run_is_killed(run: Run) -> None:
    assert within(20, lambda: len(run.workers) == 2)
    (folder,) = recordings(run.folder)
    first, *rest = snnbench(run.folder, "status", folder).stdout.splitlines()
    assert first.startswith(f"{folder}: 1 of 3 cells, about ") and first.endswith(" left; 1 measured")
    assert len(rest) == 1 and rest[0].startswith("  runs since ") and ": slow subtract N=" in rest[0]
    run.stop(signal.SIGKILL)
    assert len(in_progress.read(folder)) == 1, "the running cell can be seen"
    assert snnbench(run.folder, "status", folder).stdout.splitlines() == [f"{folder}: 1 of 3 cells; 1 measured"]
    assert run.finish().returncode == 0
    assert snnbench(run.folder, "status", folder).stdout == f"{folder}: 3 of 3 cells, finished; 3 measured\n"
    assert not list(folder.glob("*.running"))


def test_cancelled_cell_is_counted_but_not_done(tmp_path: Path) -> None:
    cells = [made("a"), failed("a", "timeout", "late", trial=1), failed("b", "cancelled", "stopped")]
    folder = write(tmp_path / "r", *cells, planned=4)
    assert list(lines(folder)) == [f"{folder}: 2 of 4 cells; 1 cancelled, 1 measured, 1 timeout"]


def test_time_left_is_an_average_cell_for_each_remaining_cell(tmp_path: Path) -> None:
    timed = [replace(made("a", trial=trial), wall_s=seconds) for trial, seconds in enumerate((2.0, 4.0))]
    (part,) = parts(write(tmp_path / "r", *timed, planned=7))
    assert part.left_s == 15.0
    (part,) = parts(write(tmp_path / "unknown", *timed))
    assert part.left_s is None


def test_unknown_number_of_planned_cells(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", made("a"))
    assert list(lines(folder)) == [f"{folder}: 1 of ? cells; 1 measured"]
    folder = write(tmp_path / "finished", made("a"), finished=True)
    assert list(lines(folder)) == [f"{folder}: 1 of 1 cells, finished; 1 measured"]


def test_run_has_a_line_for_each_shard_even_without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    config = {"identity": "x", "shards": ["1/3", "2/3", "3/3"], "planned": 6}
    made_run = jobs.create(tmp_path / "runs" / "tiny", config)
    made_run = jobs.remember_ids(made_run, {Shard(1, 3): "12_0", Shard(2, 3): "12_1"})
    write(made_run.recording(Shard(1, 3)), made("a"), made("a", trial=1), planned=2, finished=True)
    write(made_run.recording(Shard(2, 3)), made("b"), planned=2)
    first, *rest = lines(made_run.folder)
    assert first == f"{made_run.folder}: 3 of 6 cells; 3 measured"
    assert rest[0] == "shard 1/3: 2 of 2 cells, finished; 2 measured"
    assert rest[1].startswith("shard 2/3: 1 of 2 cells, job 12_1 unknown: squeue: ")
    assert rest[1].endswith("; 1 measured")
    assert rest[2] == "shard 3/3: 0 of ? cells, no job yet"


def test_mark_belongs_to_a_cell_until_it_is_removed(tmp_path: Path) -> None:
    folder = write(tmp_path / "r", made("a"))
    in_progress.put(folder, RUNNING)
    assert in_progress.read(folder) == [RUNNING]
    with append(folder, {"identity": "x"}, {}):
        assert in_progress.runs(folder)
        assert parts(folder)[0].running == [RUNNING]
    assert not in_progress.runs(folder) and parts(folder)[0].running == []
    in_progress.remove(folder, RUNNING.cell)
    assert in_progress.read(folder) == []
    in_progress.put(folder, RUNNING)
    (folder / f"torn{in_progress.SUFFIX}").write_text('{"schema": 3, "cell"')
    assert in_progress.read(folder) == [RUNNING], "a half-written mark is ignored"
    in_progress.clear(folder)
    assert list(folder.glob("*.running")) == []


def test_status_of_another_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r": no recording here \(no records\.jsonl\)$"):
        list(lines(tmp_path))
