"""A job's work on its node: it runs one shard, as `snnbench run --shard` does."""

import os
import signal
from types import FrameType

from snnbench.run import local
from snnbench.run.request import Request

KILLED_STATUS = 128 + signal.SIGTERM


def perform(request: Request) -> None:
    """Record the shard of a request. Its paths are absolute, its environments exist, and nothing is fetched here.

    At SIGTERM the process ends without a record of the running cell: only Slurm knows whether the job hit its time
    limit, lost its node or was cancelled. submitit's signal handlers are removed.
    """
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # a warning before the end, for programs that checkpoint
    os.environ["UV_OFFLINE"] = "1"
    local.run(request)


def _end(signal_number: int, frame: FrameType | None) -> None:
    raise SystemExit(KILLED_STATUS)
