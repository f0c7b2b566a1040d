"""Slurm: what became of jobs, by squeue and by what they left behind, and what that means for the cell that one ran.

squeue forgets a job some minutes after its end, and there may be no accounting. What Slurm wrote into a killed job's
own log is then all that is left.
"""

import re
import shutil
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from snnbench.exits import Exit, UserError
from snnbench.workloads.outcome import FailureKind

SQUEUE_S = 60.0
"""How long squeue may take to answer."""
LOG_TAIL_BYTES = 8192
KINDS: dict[str, FailureKind] = {
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "OUT_OF_MEMORY": "oom-host",
    "NODE_FAIL": "lost",
    "BOOT_FAIL": "lost",
    "UNKNOWN": "lost",
    "CANCELLED": "cancelled",
    "PREEMPTED": "cancelled",
    "REVOKED": "cancelled",
    "FAILED": "crash",
    "COMPLETED": "crash",
}
"""The states in which a job has ended, and what its cell failed of if it still ran. UNKNOWN is ours: nobody knows."""
OF_THE_JOB = ("timeout", "crash")
"""What a job ends of for all that its cells took together: of a worker's own time and death the runner knows."""
SAID = {
    "DUE TO TIME LIMIT": "TIMEOUT",
    "DUE TO NODE FAILURE": "NODE_FAIL",
    "DUE TO PREEMPTION": "PREEMPTED",
    "": "CANCELLED",
}
KILLED = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+ ?(DUE TO [A-Z ]+)?")
OURS = ("array", "chdir", "error", "output", "open_mode", "job_name", "nodes", "ntasks", "ntasks_per_node", "wrap")
"""Options of sbatch that snnbench gives itself, or with which a job would no longer be one process in its place."""


class SlurmError(UserError):
    """Slurm cannot do what was asked, or has not; the message says what to do."""


class UnknownOption(UserError):
    """No option for a job; the message says what one looks like."""

    code = Exit.USAGE


@dataclass(frozen=True, slots=True)
class State:
    """A job's state in Slurm's word, and why it waits, if it does."""

    name: str
    reason: str = ""

    @property
    def active(self) -> bool:
        """Whether the job waits or runs, or is about to again."""
        return self.name not in KINDS

    @property
    def runs(self) -> bool:
        """Whether it has a node."""
        return self.name in ("RUNNING", "COMPLETING")

    def __str__(self) -> str:
        """As it is told."""
        waits = self.active and self.reason not in ("", "None")
        return f"{self.name} ({self.reason})" if waits else self.name


def kind(state: State, first: bool) -> FailureKind:
    """What the cell failed of that ran when its job ended so. Of what ends jobs only the job's first cell is guilty."""
    failure = KINDS[state.name]
    return failure if first or failure not in OF_THE_JOB else "cancelled"


def states(jobs: Collection[str]) -> dict[str, State]:
    """State by job, `12` or `12_3`, of those that Slurm still knows. Raises SlurmError where it does not answer."""
    if not jobs:
        return {}
    arrays = sorted({job.split("_")[0] for job in jobs})
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T|%r", f"--jobs={','.join(arrays)}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SQUEUE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"squeue: {error}") from error
    if done.returncode and "Invalid job id" not in done.stderr:
        raise SlurmError(f"squeue: {_last_line(done.stderr) or f'exit status {done.returncode}'}")
    return {job: state for job, state in parse(done.stdout).items() if job in jobs}


def parse(text: str) -> dict[str, State]:
    """State by job in what squeue prints: a line `12_3|PENDING|Resources` for each."""
    rows = [line.split("|", 2) for line in text.splitlines() if line.count("|") >= 2]
    return {job.strip(): State(name.strip(), reason.strip()) for job, name, reason in rows}


def left_behind(log: Path) -> State:
    """How a job ended that Slurm has forgotten, by the last thing that Slurm wrote into its log."""
    reasons = KILLED.findall(tail(log))
    return State(SAID.get(reasons[-1].strip(), "CANCELLED") if reasons else "UNKNOWN")


def tail(log: Path) -> str:
    """The end of a log; nothing where there is none."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def last_said(log: Path) -> str:
    """The last line of a log."""
    return _last_line(tail(log))


def options(texts: Sequence[str]) -> dict[str, str | bool]:
    """`time=60` or `exclusive`, as for sbatch: value by option, with underscores. Raises UnknownOption."""
    by_name: dict[str, str | bool] = {}
    for text in texts:
        name, given, value = text.partition("=")
        key = name.strip().lstrip("-").replace("-", "_")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", key) or "\n" in value or (given and not value.strip()):
            raise UnknownOption(f"--slurm: {text!r} is no option of sbatch such as partition=gpu, time=60 or exclusive")
        if key in OURS:
            raise UnknownOption(f"--slurm: {key} is set by snnbench itself; leave it out")
        by_name[key] = value.strip() if given else True
    return by_name


def require() -> None:
    """Raise SlurmError where there is no Slurm."""
    if not (shutil.which("sbatch") and shutil.which("squeue")):
        raise SlurmError("--executor slurm: no sbatch and squeue here; run it where jobs are submitted")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
