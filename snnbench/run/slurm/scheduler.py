"""Slurm's scheduler: states of jobs, from squeue and from their logs, and the outcome of the cell that a job ran.

squeue forgets a job some minutes after its end, and accounting may be absent. Then the only source left is Slurm's own
line in the log of a killed job.
"""

import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from snnbench.cases.outcome import FailureKind
from snnbench.exits import Exit, UserError

SQUEUE_S = 60.0
"""Timeout of squeue."""
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
"""State of an ended job -> kind of failure of the cell that still ran. UNKNOWN is not a state of Slurm: it is ours."""
OF_THE_JOB = ("timeout", "crash")
"""Ends that come from the job as a whole, not from one worker: the runner itself notices a worker's end."""
STATE_BY_REASON = {
    "DUE TO TIME LIMIT": "TIMEOUT",
    "DUE TO NODE FAILURE": "NODE_FAIL",
    "DUE TO PREEMPTION": "PREEMPTED",
    "": "CANCELLED",
}
KILLED = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+ ?(DUE TO [A-Z ]+)?")
RESERVED = (
    "array",
    "chdir",
    "error",
    "output",
    "open_mode",
    "job_name",
    "ntasks",
    "ntasks_per_node",
    "wrap",
)
"""Options of sbatch that snnbench sets itself, or that would break the one process per job in its folder."""
NODES = "nodes"
"""The option of sbatch for the nodes of each job."""


class SlurmError(UserError):
    """Slurm cannot do or did not do the request; the message says what to do."""


class UnknownOption(UserError):
    """Not a valid option for a job; the message shows valid ones."""

    code = Exit.USAGE


@dataclass(frozen=True, slots=True)
class State:
    """A job's state in Slurm's term, and the reason if it waits."""

    name: str
    reason: str = ""

    @property
    def active(self) -> bool:
        """Whether the job waits or runs, or will run again."""
        return self.name not in KINDS

    @property
    def runs(self) -> bool:
        """Whether it has a node."""
        return self.name in ("RUNNING", "COMPLETING")

    def __str__(self) -> str:
        """The state as shown to the user."""
        waits = self.active and self.reason not in ("", "None")
        return f"{self.name} ({self.reason})" if waits else self.name


def kind(state: State, first: bool) -> FailureKind:
    """Kind of failure of the cell that ran when its job ended. An end in OF_THE_JOB counts for the first cell only."""
    failure = KINDS[state.name]
    return failure if first or failure not in OF_THE_JOB else "cancelled"


def states(jobs: Collection[str]) -> dict[str, State]:
    """State by job, `12` or `12_3`, for jobs that Slurm still knows. Raises SlurmError if Slurm does not answer."""
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
    """State by job, from squeue's output: a line `12_3|PENDING|Resources` for each."""
    rows = [line.split("|", 2) for line in text.splitlines() if line.count("|") >= 2]
    return {job.strip(): State(name.strip(), reason.strip()) for job, name, reason in rows}


def left_behind(log: Path) -> State:
    """The final state of a job that Slurm has forgotten, from Slurm's last line in its log."""
    reasons = KILLED.findall(tail(log))
    return State(STATE_BY_REASON.get(reasons[-1].strip(), "CANCELLED") if reasons else "UNKNOWN")


def tail(log: Path) -> str:
    """The end of a log; "" if there is no log."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def last_line_of(log: Path) -> str:
    """The last line of a log."""
    return _last_line(tail(log))


def options(texts: Sequence[str]) -> dict[str, str | bool]:
    """`time=60` or `exclusive`, as for sbatch: value by option, with underscores. Raises UnknownOption."""
    by_name: dict[str, str | bool] = {}
    for text in texts:
        name, given, value = text.partition("=")
        key = name.strip().lstrip("-").replace("-", "_")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", key) or "\n" in value or (given and not value.strip()):
            raise UnknownOption(
                f"--slurm: {text!r}: expected an option of sbatch such as partition=gpu, time=60, nodes=2 or exclusive"
            )
        if key in RESERVED:
            raise UnknownOption(f"--slurm: {key} is set by snnbench itself; leave it out")
        by_name[key] = value.strip() if given else True
    if not re.fullmatch(r"[1-9][0-9]{0,5}", str(by_name.get(NODES, "1"))):
        raise UnknownOption(f"--slurm: {NODES}={by_name[NODES]}: expected a number of nodes for each job, such as 2")
    return by_name


def nodes(by_name: Mapping[str, str | bool]) -> int:
    """The nodes of each job with these options."""
    return int(by_name.get(NODES, "1"))


def require() -> None:
    """Raise SlurmError if Slurm is not installed."""
    if not (shutil.which("sbatch") and shutil.which("squeue")):
        raise SlurmError("--executor slurm: no sbatch and squeue here; run it where jobs are submitted")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
