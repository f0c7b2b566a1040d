"""Work after the clock: threads that still spin, and answers that are not there yet.

On a device the harness waits for all work. On the CPU nothing waits for a thread that a pass started. So an answer is
copied at once, before anybody can finish it, and then copied again: what took longer the first time was waited for, or
computed, then. CPU time would not tell: threads of honest frameworks spin for 20 ms after a parallel region.
"""

import time
from collections.abc import Callable, Sequence

Clock = Callable[[], int]

SLICE_NS = 2_000_000
"""The process is asked so often whether it still works."""
IDLE_SHARE = 0.25
"""A process that used less of a slice has ended its work."""
LONGEST_NS = 200_000_000
"""Waited for at the most: threads that are told to spin for ever do."""
SHARE = 0.1
"""Reading an answer may take so much of a pass longer for the first time than for the second."""
LEAST_NS = 1_000_000
"""Or so much, if that is more."""


def settle(
    cpu: Clock = time.process_time_ns, clock: Clock = time.perf_counter_ns, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until the threads of this process idle. Those of NumPy spin after a check, and would slow a pass down."""
    ends = clock() + LONGEST_NS
    while clock() < ends:
        before, started = cpu(), clock()
        sleep(SLICE_NS / 1e9)
        if cpu() - before < IDLE_SHARE * (clock() - started):
            break


def complaint(name: str, reading_ns: Sequence[int], pass_ns: float) -> str | None:
    """Why an answer was not there when the clock stopped, or None. The least that reading took counts."""
    waited_ns = min(reading_ns, default=0)
    if waited_ns <= max(SHARE * pass_ns, LEAST_NS):
        return None
    share = waited_ns / (waited_ns + pass_ns)
    taken = f"its answer took {waited_ns / 1e6:.3g} ms more, {share:.0%} of the work"
    return f"{name} was not done when the clock stopped: {taken}"
