"""Contention: how much of the machine others used while something was timed."""

import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from snnbench.cases import cpu_time

CONTENDED_CPUS = 0.1
"""A record is flagged if others took more CPUs beyond the counter's error, on average, while a phase was timed."""


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds since boot: busy on all CPUs or some, stolen by the hypervisor, and used by this process.

    The seconds of this process include the seconds of a partner that takes turns with it, and of the other ranks of its
    work. The CPUs include those of ranks on other machines. `error_s` is the error of a difference of busy seconds.
    """

    wall_s: float
    busy_s: float
    stolen_s: float
    own_s: float
    error_s: float = 0.0

    def with_ranks(self, busy_s: float, stolen_s: float, own_s: float) -> "Usage":
        """This usage, and that of other ranks: on CPUs of other machines, and by the ranks themselves."""
        return replace(self, busy_s=self.busy_s + busy_s, stolen_s=self.stolen_s + stolen_s, own_s=self.own_s + own_s)

    def after_all(self, before: "Usage", after: "Usage") -> "Usage":
        """This usage, as if all that happened between two later ones had happened before it."""
        return Usage(
            self.wall_s + after.wall_s - before.wall_s,
            self.busy_s + after.busy_s - before.busy_s,
            self.stolen_s + after.stolen_s - before.stolen_s,
            self.own_s + after.own_s - before.own_s,
            self.error_s,
        )


def usage(stat: Path = cpu_time.PROC_STAT, cpus: Collection[int] = (), partner_s: float = 0.0) -> Usage:
    """A snapshot of these CPUs, or of all if none are given; `partner_s` is the partner's CPU seconds so far."""
    busy_s, stolen_s = cpu_time.busy_and_stolen_s(stat, cpus)
    error_s = cpu_time.error_s(len(cpus) or os.cpu_count() or 1)
    return Usage(time.monotonic(), busy_s, stolen_s, time.process_time() + partner_s, error_s)


def between(before: Usage, after: Usage) -> dict[str, float]:
    """CPUs, on average, that other processes and the hypervisor took meanwhile, and the counter's error in them."""
    wall_s = max(1e-9, after.wall_s - before.wall_s)
    foreign_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return {
        "foreign_cpus": round(max(0.0, foreign_s / wall_s), 3),
        "stolen_cpus": round((after.stolen_s - before.stolen_s) / wall_s, 3),
        "own_cpus": round((after.own_s - before.own_s) / wall_s, 3),
        "error_cpus": round(max(before.error_s, after.error_s) / wall_s, 3),
    }


def others_cpus(phases: Mapping[str, Any]) -> float:
    """CPUs, on average, that others took at least in the most disturbed of a record's phases; 0 if none was recorded.

    Records of earlier releases lack the counter's error, and count as exact.
    """
    taken = (phase["contention"] for phase in phases.values() if "contention" in phase)
    least = (each["foreign_cpus"] + each["stolen_cpus"] - each.get("error_cpus", 0.0) for each in taken)
    return max(0.0, max(least, default=0.0))
