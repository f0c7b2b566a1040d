"""Tests of stopped runs: no measurement is lost, no process is left alive, and the same command does the rest."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.fakes import CORRECT, MEASURED, altered, write
from tests.processes import alive, noted, within
from tests.sweep import command, lines, recordings, run_arguments, snnbench, surroundings, write_config

pytestmark = pytest.mark.quiet

TRIALS = 3
WAITING = altered(
    f"""
import os, time
from pathlib import Path

folder = Path(__file__).parent
pids = folder / "pids"
pids.touch()
if {MEASURED} and str(os.getpid()) not in pids.read_text().split():
    with pids.open("a") as file:
        print(os.getpid(), file=file)
    if len(pids.read_text().split()) == 2:
        until = time.monotonic() + 30
        while time.monotonic() < until and not (folder / "go").exists():
            time.sleep(0.01)
return right
"""
)
"""A fake. Its workers note their pids after the exam, and its second worker then waits for a file."""


class Run:
    """A running `snnbench run` in `folder`."""

    def __init__(self, folder: Path, source: str, trials: int) -> None:
        self.folder = folder
        config = write_config(folder, ["slow"], trials=trials, memory_trials=0)
        self.arguments = run_arguments(config, [write(folder, source, "slow")])
        self.process = subprocess.Popen(
            ["env", "--default-signal=HUP", *command(*self.arguments)],  # a caller's nohup would make it ignored
            cwd=folder,
            env=surroundings(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def workers(self) -> list[int]:
        """The pids of the workers so far."""
        return noted(self.folder / "pids")

    def stop(self, how: signal.Signals) -> None:
        """Send a signal only to the harness, while its second worker waits; wait for its end."""
        assert within(20, lambda: len(self.workers) == 2)
        self.process.send_signal(how)
        self.process.wait(10)

    def finish(self) -> "subprocess.CompletedProcess[str]":
        """Give the same command once more."""
        return snnbench(self.folder, *self.arguments)


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    """A run of TRIALS cells, or of the test's parameter."""
    started = Run(tmp_path, WAITING, getattr(request, "param", TRIALS))
    with started.process:
        yield started
        started.process.kill()  # its worker goes with it


def outcomes(folder: Path) -> list[str]:
    """The kind of every written line, or else its status."""
    (recording,) = recordings(folder)
    return [line["outcome"].get("kind") or line["outcome"]["status"] for line in lines(recording)]


def measured(folder: Path) -> Counter[int]:
    """How often each trial was measured."""
    (recording,) = recordings(folder)
    return Counter(line["trial"] for line in lines(recording) if line["outcome"]["status"] == "measured")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_run_is_continued_by_the_same_command(run: Run, how: signal.Signals) -> None:
    run.stop(how)
    assert run.process.returncode == 130
    assert run.process.stdout is not None and run.process.stderr is not None
    messages = run.process.stderr.read().splitlines()
    assert messages[-2].endswith(": all records are kept, and the same command continues")
    assert (messages[-1], run.process.stdout.read()) == ("snnbench: interrupted", "")
    assert not [pid for pid in run.workers if alive(pid)]
    assert outcomes(run.folder) == ["measured", "cancelled"]
    done = run.finish()
    assert done.returncode == 0, done.stderr
    assert "continues; 1 of 3 cells are there" in done.stderr
    assert outcomes(run.folder) == ["measured", "cancelled", "measured", "measured"]
    assert measured(run.folder) == Counter(range(TRIALS))
    assert "3 of 3 cells measured" in done.stdout


def test_killed_harness_leaves_no_worker_and_is_continued(run: Run) -> None:
    run.stop(signal.SIGKILL)
    assert within(1, lambda: not alive(run.workers[-1]))
    assert outcomes(run.folder) == ["measured"]
    done = run.finish()
    assert done.returncode == 0, done.stderr
    assert outcomes(run.folder) == ["measured"] * TRIALS
    assert measured(run.folder) == Counter(range(TRIALS))
    assert len(run.workers) == TRIALS + 1, "no measured cell is measured again"


def test_harness_killed_during_a_workers_start_leaves_no_worker(tmp_path: Path) -> None:
    run = Run(tmp_path, f"import time\ntime.sleep(30)\n{CORRECT}", trials=1)
    harness = psutil.Process(run.process.pid)
    workers: list[int] = []

    def starting() -> bool:
        with suppress(psutil.NoSuchProcess):  # a child that inspects the machine may have ended
            workers[:] = [child.pid for child in harness.children() if "snnbench.worker" in child.cmdline()]
        return bool(workers)

    with run.process:
        assert within(20, starting)
        run.process.kill()
    (worker,) = workers
    assert within(1, lambda: not alive(worker))


@pytest.mark.parametrize("run", [1], indirect=True, ids=["one cell"])
def test_run_killed_after_its_last_cell_is_only_finished(run: Run) -> None:
    """The kill comes between the last record and the end. The next command ends the run; a third starts a new one."""
    assert run.process.wait(20) == 0
    (first,) = recordings(run.folder)
    config = (first / "config.json").read_text()
    (first / "config.json").write_text(config.replace('"finished": true', '"finished": false'))
    assert (first / "config.json").read_text() != config
    done = run.finish()
    assert (done.returncode, outcomes(run.folder)) == (0, ["measured"])
    assert "1 of 1 cells are there" in done.stderr and "1 of 1 cell measured" in done.stdout
    assert len(run.workers) == 1
    (run.folder / "go").touch()
    assert run.finish().returncode == 0
    (_, second) = recordings(run.folder)
    assert second.name == f"{first.name}_2"
    assert [len(lines(recording)) for recording in (first, second)] == [1, 1]


@pytest.mark.parametrize("run", [2], indirect=True, ids=["two cells"])
def test_second_run_into_the_same_folder_is_refused(run: Run) -> None:
    assert within(20, lambda: len(run.workers) == 2)
    other = run.finish()
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr.splitlines()[-1].endswith("another run is writing here")
    (run.folder / "go").touch()
    assert run.process.wait(20) == 0
    assert measured(run.folder) == Counter(range(2))


def test_run_on_a_full_disk_ends_with_one_line_and_is_continued(tmp_path: Path) -> None:
    """A file size limit stands in for the disk: bytes up to the limit are written, the rest is refused."""
    config = write_config(tmp_path, ["fake"], trials=2, memory_trials=0)
    arguments = run_arguments(config, [write(tmp_path, CORRECT)])
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, -1)); sys.argv[0] = 'snnbench'"
    done = subprocess.run(
        [sys.executable, "-c", f"{limited}; from snnbench.cli import main; sys.exit(main())", *map(str, arguments)],
        cwd=tmp_path,
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    (recording,) = recordings(tmp_path)
    assert done.stderr.splitlines()[-1] == (
        f"snnbench: {recording.relative_to(tmp_path)}: cannot be written (File too large); "
        "its records are kept, and the same command continues once it can be written"
    )
    assert (recording / "records.jsonl").stat().st_size == 4000
    again = snnbench(tmp_path, *arguments)
    assert again.returncode == 0, again.stderr
    assert "2 of 2 cells measured" in again.stdout
