"""Checks for work after the clock stopped: spinning threads and unfinished answers.

On a device the harness waits for all work. On the CPU it cannot wait for a thread that a pass started. So it copies an
answer at once, and then again, several times. If the first copy takes longer than all others, the answer was finished
during that copy. CPU time would not tell: threads of honest frameworks spin for 20 ms after a parallel region.
"""

import time
from collections.abc import Callable, Sequence
from statistics import median

Clock = Callable[[], int]

SLICE_NS = 1_000_000
"""Interval between two checks whether the process still works."""
IDLE_SHARE = 0.25
"""If a process uses a smaller share of a slice, its work has ended."""
LONGEST_NS = 200_000_000
"""The longest wait: some threads are told to spin for ever."""
SHARE = 0.1
"""The share of a pass by which the first reading of an answer may exceed its slowest other reading."""
LEAST_NS = 1_000_000
"""The same in nanoseconds; the larger of the two applies."""
MORE_LOOKS = 2
"""Answers that are read again in addition, while most answers seem late: an odd number of looks has a majority."""
MOST_LOOKS = 9
"""Answers that are read again before they count as late: a copy of a large answer may take as long as a pass."""


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


def complaint(name: str, reading_ns: Sequence[int], pass_ns: float) -> str | None:
    """Why most answers were not complete when the clock stopped, or None. The median of `reading_ns` counts."""
    waited_ns = median(reading_ns) if reading_ns else 0
    if waited_ns <= max(SHARE * pass_ns, LEAST_NS):
        return None
    share = waited_ns / (waited_ns + pass_ns)
    taken = f"its answer took {waited_ns / 1e6:.3g} ms more, {share:.0%} of the work"
    return f"{name} was not done when the clock stopped: {taken}"
