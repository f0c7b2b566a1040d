"""Tests of a run as jobs of a real Slurm on this machine; tests/release has jobs that are left, killed and lost."""

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


def test_invalid_job_option_is_one_line(run: Run) -> None:
    status, messages = run.whole("--slurm", "partition=none")
    assert status == 1
    assert messages.splitlines()[-1].startswith("snnbench: sbatch: "), messages
    assert "invalid partition" in messages.splitlines()[-1]
    assert run.jobs == {}
