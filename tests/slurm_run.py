"""A run of snnbench with Slurm's executor, which a test starts, watches and ends."""

import json
import subprocess
from pathlib import Path

from snnbench.recording.reading import read
from snnbench.recording.record import Record
from tests.processes import noted, within
from tests.slurm import Slurm
from tests.sweep import command, surroundings

SLOW_S = 240.0


class Run:
    """A run of `snnbench run --executor slurm` in `folder`; jobs have squeue's names."""

    def __init__(self, folder: Path, slurm: Slurm, arguments: list[str | Path]) -> None:
        self.folder, self.slurm, self.arguments = folder, slurm, arguments
        self.process: subprocess.Popen[str] | None = None
        # Slots belong to a machine: with its own folder for temporary files, this run has its own slots.
        (folder / "tmp").mkdir()
        self.environment = surroundings(folder) | slurm.environment | {"TMPDIR": str(folder / "tmp")}
        self.known = set(slurm.states())

    def start(self, *more: str) -> "subprocess.Popen[str]":
        """Start the command."""
        options = {"cwd": self.folder, "env": self.environment, "text": True}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command(*self.arguments, "--executor", "slurm", *more), **options, **pipes)  # type: ignore[call-overload]
        return self.process

    def reads(self, words: str) -> str:
        """Wait until the command prints these words. Returns its messages so far."""
        assert self.process is not None and self.process.stderr is not None
        messages = ""
        while words not in messages:
            line = self.process.stderr.readline()
            assert line, messages
            messages += line
        return messages

    def end(self) -> tuple[int, str]:
        """Wait for the command's end. Returns its exit status and its messages."""
        assert self.process is not None
        _, messages = self.process.communicate(timeout=SLOW_S)
        return self.process.returncode, messages

    def whole(self, *more: str) -> tuple[int, str]:
        """Run the command from its start to its end."""
        self.start(*more)
        return self.end()

    def say(self, *arguments: str | Path) -> str:
        """The output of another command."""
        done = subprocess.run(
            command(*arguments), cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=SLOW_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def jobs(self) -> dict[str, str]:
        """The state of each of this run's jobs."""
        return {job: state for job, state in self.slurm.states().items() if job not in self.known}

    def waits(self) -> bool:
        """Whether the third worker, the waiting one, has started."""
        return within(SLOW_S, lambda: len(noted(self.folder / "pids")) >= 3)

    def go(self) -> None:
        """Let the waiting worker and all later ones go on."""
        (self.folder / "go").touch()

    def at(self) -> tuple[str, str]:
        """The job and the shard of the waiting cell."""
        (mark,) = (self.folder / "runs").glob("*/*/*.running")
        shard = mark.parent.name.replace("of", "/")
        return self.ids[shard], shard

    @property
    def ids(self) -> dict[str, str]:
        """The last submitted job of each shard."""
        submitted: dict[str, str] = {}
        for jobs in (self.folder / "runs").glob("*/jobs.json"):
            submitted |= json.loads(jobs.read_text())
        return submitted

    def running(self) -> set[str]:
        """The jobs that run a cell."""
        marked = {mark.parent.name.replace("of", "/") for mark in (self.folder / "runs").glob("*/*/*.running")}
        return {self.ids[shard] for shard in marked} & {job for job, state in self.jobs.items() if state == "RUNNING"}

    @property
    def records(self) -> list[Record]:
        """The records of the merged recording."""
        (folder,) = (self.folder / "results").glob("*")
        return read(folder).records
