"""The end of a worker with all processes that it started, inside its session and outside of it."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil

WORKER_ID = "SNNBENCH_WORKER"
"""The environment variable that identifies a worker in its own processes and in all that it starts."""
LONGEST_END_S = 5.0
LONGEST_EXEC_S = 0.5
"""How long a process may take to become another program; until then its environment cannot be read."""
KERNEL_THREADS = 2
"""The process whose children are the kernel's own threads, which have no environment."""


def end_all(process: "subprocess.Popen[bytes]", mark: str) -> None:
    """Kill all processes left of the worker, inside its session and outside, and wait until they are gone.

    While the worker lives, its descendants are found by parentage. Afterwards they belong to init, and the mark
    identifies them.
    """
    left: set[psutil.Process] = set()
    started_s = 0.0
    with suppress(psutil.NoSuchProcess):
        worker = psutil.Process(process.pid)
        started_s = worker.create_time()
        left.update(worker.children(recursive=True))
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    now = time.monotonic()
    deadline, exec_deadline = now + LONGEST_END_S, now + LONGEST_EXEC_S
    while time.monotonic() < deadline:
        marked, is_one_starting = _marked(mark, started_s)
        left = {survivor for survivor in left | marked if _alive(survivor)}
        if not left and not (is_one_starting and time.monotonic() < exec_deadline):
            break
        for survivor in left:
            with suppress(psutil.Error):
                survivor.kill()
        time.sleep(0.001)


def _marked(mark: str, since_s: float) -> tuple[set[psutil.Process], bool]:
    """Processes that were started with this mark, and whether one younger than `since_s` is becoming a program.

    The environment of such a process is empty for a moment.
    """
    marked, is_one_starting = set(), False
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError, psutil.Error):
                variables = (folder / "environ").read_bytes()
                if f"{WORKER_ID}={mark}".encode() in variables:
                    marked.add(psutil.Process(int(folder.name)))
                elif not variables:
                    process = psutil.Process(int(folder.name))
                    is_young = process.create_time() >= since_s and process.ppid() != KERNEL_THREADS
                    is_one_starting = is_one_starting or (is_young and _alive(process))
    return marked, is_one_starting


def _alive(process: psutil.Process) -> bool:
    """Whether a process runs. A zombie does not: only its parent can reap it."""
    with suppress(psutil.NoSuchProcess):
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return False
