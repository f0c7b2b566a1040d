"""Work after the clock: CPU time that the process uses while it should be idle.

On a device the harness waits for all work. On the CPU nothing waits for a thread that a pass started, nor for an answer
that is computed when it is read. Threads of an honest framework spin for some milliseconds after a parallel region; a
bare product by the same framework says how long, so only what exceeds that counts.
"""

import time
from collections.abc import Callable, Sequence

Clock = Callable[[], int]

SLICE_NS = 4_000_000
"""The process is asked so often whether it still works."""
IDLE_SHARE = 0.25
"""A process that used less of a slice has ended its work."""
LONGEST_NS = 1_000_000_000
SHARE = 0.1
"""Work after the clock is found out from this share of a pass on."""
LEAST_NS = 8_000_000
"""Shorter work cannot be told from threads that spin."""
LEAST_READING_NS = 1_000_000
"""Reading an answer for the first time may take so much longer than for the second."""


def cpu_ns(
    cpu: Clock = time.process_time_ns, clock: Clock = time.perf_counter_ns, sleep: Callable[[float], None] = time.sleep
) -> int:
    """CPU time of all threads of this process from now until it idles, or for a second."""
    began, ends = cpu(), clock() + LONGEST_NS
    while clock() < ends:
        before, started = cpu(), clock()
        sleep(SLICE_NS / 1e9)
        if cpu() - before < IDLE_SHARE * (clock() - started):
            break
    return cpu() - began


def complaint(
    name: str, seen_ns: Sequence[int], spinning_ns: Sequence[int], reading_ns: Sequence[int], pass_ns: float
) -> str | None:
    """Why a phase works on after the clock, or None.

    Of the CPU times after a pass and of the times that reading took the least counts, of those that threads spin the
    most.
    """
    left_ns = min(seen_ns, default=0) - max(spinning_ns, default=0)
    if left_ns > max(SHARE * pass_ns, LEAST_NS):
        share = left_ns / (left_ns + pass_ns)
        taken = f"{left_ns / 1e6:.3g} ms of CPU time, {share:.0%} of its work"
        return f"{name} worked on after the clock had stopped: {taken}"
    waited_ns = min(reading_ns, default=0)
    if waited_ns > max(SHARE * pass_ns, LEAST_READING_NS):
        share = waited_ns / (waited_ns + pass_ns)
        return f"{name} was computed when it was read: {waited_ns / 1e6:.3g} ms, {share:.0%} of its work"
    return None
