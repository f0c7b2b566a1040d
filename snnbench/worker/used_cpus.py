"""The CPUs that a worker uses in the passes it times, with those of all processes that it has started.

A worker is pinned to the CPUs of its case, so honest threads and processes cannot use more. A library may undo that.
Where the system cannot pin, the processes of a loader may use a CPU each besides.
On a busy machine its further threads get little time, so the CPUs on which they may run are looked at, too.
"""

import math
import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from snnbench.worker.instructions import Count

MARGIN_CPUS = 0.1
"""A time is refused if its passes used so many CPUs more than the case has."""
LONGER = 1.5
"""A piece that takes so many times the longest repetition is a first call."""
PROC = Path("/proc")
SCHEDULED = 2
"""CPUCLOCK_SCHED of the kernel: the clock that counts the CPU time of a process, in nanoseconds."""


class UsedCpus:
    """Readings of the clock and of the CPU time before and after each timed piece of a phase."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._began: tuple[float, float] | None = None
        self._pieces: list[tuple[float, float]] = []

    def count(self) -> int | None:
        """The instructions so far. It is called right before each timed piece and right after it."""
        if self._began is None:
            self._began = time.perf_counter(), seconds()
            return self._count()
        instructions = self._count()
        (wall_s, cpu_s), self._began = self._began, None
        cpu_s, wall_s = seconds() - cpu_s, time.perf_counter() - wall_s
        self._pieces.append((wall_s, cpu_s))
        return instructions

    def cpus(self, timing: Mapping[str, Any], threads: int) -> float:
        """CPUs used at least in all pieces as long as a repetition. An epoch has its CPUs in its contention.

        The kernel adds up the time of a thread that runs on another CPU in steps, so each reading is late by a part of
        a step for each of them. The difference of two has a standard deviation of sqrt(threads / 6) steps; three of
        these are taken off. Single passes on new content are too short for that: if they became the repetitions, those
        before count.
        """
        repetitions_ns = timing.get("contested_ns") or timing["repetitions_ns"]
        shortest_s, longest_s = (of(repetitions_ns) / 1e9 for of in (min, max))
        used = [each for each in self._pieces if shortest_s <= each[0] <= LONGER * longest_s]
        if not used:
            return float(timing["contention"]["own_cpus"])
        wall_s, cpu_s = map(sum, zip(*used, strict=True))
        error_s = 3 * math.sqrt(len(used) * threads / 6) / os.sysconf("SC_CLK_TCK")
        return round(max(0.0, cpu_s - error_s) / wall_s, 3)


def complaint(phase: str, cpus: float, threads: int) -> str | None:
    """Why the time of a phase is refused, in one line; None if it is not."""
    if cpus <= threads + MARGIN_CPUS:
        return None
    return f"{phase} uses {cpus:.3g} CPUs where the case has {threads} thread{'s' * (threads > 1)}"


def unpinned(phase: str, cpus: Collection[int]) -> str | None:
    """Why the time of a phase is refused if a thread of its processes may run on other CPUs than these."""
    beyond: set[int] = set()
    for pid in (os.getpid(), *descendants(os.getpid())):
        for thread in (PROC / f"{pid}/task").glob("*"):
            with suppress(OSError):  # it has ended
                beyond |= os.sched_getaffinity(int(thread.name)) - {*cpus}
    if not cpus or not beyond:
        return None
    return f"{phase} may run on CPU {', '.join(map(str, sorted(beyond)))}, to which its case is not pinned"


def seconds() -> float:
    """CPU seconds so far of this process and of all that it started."""
    return time.process_time() + of_children_s()


def of_children_s() -> float:
    """CPU seconds so far of the processes that this one started, whether they still run or not."""
    ended = getrusage(RUSAGE_CHILDREN)
    total_s = ended.ru_utime + ended.ru_stime
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # this process has no children
        return total_s
    return total_s + sum(map(_of_process_s, descendants(os.getpid())))


def descendants(pid: int) -> list[int]:
    """The processes that this one started, with all that they started, as far as they still run."""
    children: list[int] = []
    for thread in (PROC / f"{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            children += map(int, thread.read_text().split())
    return [each for child in children for each in (child, *descendants(child))]


def _of_process_s(pid: int) -> float:
    """CPU seconds of another process and of its children that have ended; 0 once it has gone."""
    with suppress(OSError):
        _, _, rest = (PROC / f"{pid}/stat").read_text().rpartition(") ")
        of_children = sum(map(int, rest.split()[13:15])) / os.sysconf("SC_CLK_TCK")  # cutime and cstime
        return of_children + time.clock_gettime(~pid << 3 | SCHEDULED)
    return 0.0
