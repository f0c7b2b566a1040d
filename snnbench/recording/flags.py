"""Flags: warnings about the circumstances of a measured cell. A flag never drops a record."""

from collections.abc import Collection, Mapping
from typing import Any

from snnbench.recording.drift import DRIFTED, FACTOR
from snnbench.worker.contention import CONTENDED_CPUS, others_cpus

LEAST_GROWTH_BYTES = 256 << 10
"""Least growth per pass that is flagged: an allocator that settles took up to 75 KiB."""
FLAGS: dict[str, str] = {
    "contended": f"others took more than {CONTENDED_CPUS:g} CPUs, beyond the counter's error, while a phase was timed",
    DRIFTED: f"the machine was over {FACTOR:g} times slower or faster beside it than it usually was in this run",
    "throttled": "a processor slowed down for heat or power meanwhile",
    "shared": "another process was on the same card before, meanwhile or after",
    "grows": "the memory in use grew with every pass",
    "threads": "the framework ran with another number of threads than asked",
    "graph-breaks": "a compiler left parts of the network to Python",
}
"""flag -> its meaning."""
OBSERVED = (DRIFTED, "throttled", "shared")
"""Flags from outside the reply: from the harness, or from the whole recording (drift)."""


def raised(
    phases: Mapping[str, Any],
    memory: Mapping[str, Any],
    settings: Mapping[str, Any],
    threads: int,
    observed: Collection[str],
) -> list[str]:
    """The flags of a measured cell; `threads` is the number that its case asks for.

    `observed` are the flags that do not follow from the record itself.
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
