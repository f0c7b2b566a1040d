"""Waiting for threads that still spin after work: an idle process is timed as one that computes alone."""

import time
from collections.abc import Callable

Clock = Callable[[], int]

SLICE_NS = 1_000_000
"""Interval between two checks whether the process still works."""
IDLE_SHARE = 0.25
"""If a process uses a smaller share of a slice, its work has ended."""
LONGEST_NS = 200_000_000
"""The longest wait: some threads are told to spin for ever."""


def settle(
    cpu: Clock = time.process_time_ns, clock: Clock = time.perf_counter_ns, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until the threads of this process idle. NumPy's threads spin after a check and would slow a pass down."""
    ends = clock() + LONGEST_NS
    while clock() < ends:
        before, started = cpu(), clock()
        sleep(SLICE_NS / 1e9)
        if cpu() - before < IDLE_SHARE * (clock() - started):
            break
