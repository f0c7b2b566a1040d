"""What a job of `snnbench run --executor slurm` does on its node: one shard, as `snnbench run --shard` would."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from snnbench.adapter.discovery import discover
from snnbench.environments.interpreters import Env
from snnbench.plan.config import Config
from snnbench.plan.shard import Shard
from snnbench.run.local import Continuation, Test, record_sweep

KILLED_STATUS = 128 + signal.SIGTERM


@dataclass(frozen=True, slots=True)
class Task:
    """A shard of a run, and how it was asked for; `files` are adapters of the user's own, and paths are absolute."""

    config: Config
    files: tuple[Path, ...]
    only: tuple[str, ...]
    env: Env
    folder: Path
    shard: Shard
    retry: tuple[str, ...]
    cuda: bool
    test: Test | None = None


def perform(task: Task) -> None:
    """Record the shard. Environments were made where it was submitted, and nothing is fetched here.

    On SIGTERM it ends without a word of the cell that it runs, which its mark names: only Slurm knows whether the time
    was over, the node lost or the job cancelled. What submitit would do at signals is undone.
    """
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # a warning of the end, for those that save their state only then
    os.environ["UV_OFFLINE"] = "1"
    record_sweep(
        task.config,
        discover(task.files),
        task.only,
        task.env,
        task.folder,
        task.shard,
        Continuation(task.retry),
        cuda=task.cuda,
        test=task.test,
    )


def _end(signal_number: int, frame: FrameType | None) -> None:
    raise SystemExit(KILLED_STATUS)
