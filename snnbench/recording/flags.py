"""Flags: what a reader should know of how a cell was measured; nothing is dropped for one."""

from collections.abc import Collection, Mapping
from typing import Any

from snnbench.recording.drift import DRIFTED, FACTOR
from snnbench.worker.contention import CONTENDED_CPUS, others_cpus

LEAST_GROWTH_BYTES = 256 << 10
"""A pass, from which on a record is flagged: an allocator that settles was seen to take up to 75 KiB."""
FLAGS: dict[str, str] = {
    "contended": f"others took more than {CONTENDED_CPUS:g} CPUs, on average, while a phase was timed",
    DRIFTED: f"the machine was over {FACTOR:g} times slower or faster beside it than it usually was in this run",
    "throttled": "a processor slowed down for heat or power meanwhile",
    "shared": "another process was on the same card before, meanwhile or after",
    "grows": "the memory in use grew with every pass",
    "threads": "the framework ran with another number of threads than asked",
    "graph-breaks": "a compiler left parts of the network to Python",
}
"""What a reader should know of a cell that was measured; nothing is dropped for it."""
OBSERVED = (DRIFTED, "throttled", "shared")
"""Flags that the harness sees from outside, and that of the whole recording; the others are in the reply."""


def raised(
    phases: Mapping[str, Any],
    memory: Mapping[str, Any],
    settings: Mapping[str, Any],
    threads: int,
    observed: Collection[str],
) -> list[str]:
    """What a reader should know of the circumstances of a cell that asked for so many threads.

    `observed` are the flags that nothing in the record itself says.
    """
    holds = {
        "contended": others_cpus(phases) > CONTENDED_CPUS,
        **{flag: flag in observed for flag in OBSERVED},
        "grows": any(
            (memory.get(place, {}).get("growth_bytes") or 0) >= LEAST_GROWTH_BYTES for place in ("host", "device")
        ),
        "threads": settings.get("threads", threads) != threads,
        "graph-breaks": settings.get("graph_breaks", 0) > 0,
    }
    return [flag for flag in FLAGS if holds[flag]]
