"""What a job of `snnbench run --executor slurm` does on its node: one shard, as `snnbench run --shard` does."""

import os
import signal
from types import FrameType

from snnbench.run import local
from snnbench.run.request import Request

KILLED_STATUS = 128 + signal.SIGTERM


def perform(request: Request) -> None:
    """Record the shard of a request whose paths are absolute. Its environments exist, and nothing is fetched here.

    At SIGTERM the process ends without a record of the cell that runs. Only Slurm knows whether the time was over, the
    node was lost or the job was cancelled. The signal handlers of submitit are removed.
    """
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # a warning of the end, for programs that save their state only then
    os.environ["UV_OFFLINE"] = "1"
    local.run(request)


def _end(signal_number: int, frame: FrameType | None) -> None:
    raise SystemExit(KILLED_STATUS)
