"""The program whose memory was measured: its passes take about as long as those in the time cells.

A library knows which kind of cell it is in, and could run a slower program that needs less memory there.
"""

from collections.abc import Iterable, Iterator
from statistics import median

from snnbench.recording.record import Record
from snnbench.worker.durations import median_ns

MOST_TIMES = 20.0
"""The allocator gives all memory back, so honest passes take longer: up to 12 times, where a network has new arrays of
half a megabyte at each of 17 sites (results/2026-11-30_spikformer_epyc-2cpu)."""


def complaints(records: Iterable[Record]) -> Iterator[tuple[Record, str]]:
    """(memory record, complaint) for one contender in one case; recordings before schema 8 have no such passes."""
    each = [record for record in records if record.status == "measured"]
    for record in each:
        if passes_ns := record.memory.get("passes_ns"):
            phase = record.memory["phase"]
            times = [median_ns(one.phases[phase]) for one in each if phase in one.phases and one.side == record.side]
            if times and min(passes_ns) > MOST_TIMES * median(times):
                times_as_long = min(passes_ns) / median(times)
                yield record, f"memory is of another program: its passes take {times_as_long:.3g} times as long"
