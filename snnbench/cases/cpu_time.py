"""Seconds of CPUs: how long they were busy, and how long the hypervisor took them."""

import math
import os
import platform
from collections.abc import Collection
from pathlib import Path

PROC_STAT = Path("/proc/stat")
BOOT = Path("/proc/sys/kernel/random/boot_id")


def busy_and_stolen_s(stat: Path = PROC_STAT, cpus: Collection[int] = ()) -> tuple[float, float]:
    """Seconds since boot on these CPUs, or on all if none are given: busy, and stolen by the hypervisor.

    Lines of /proc/stat: user nice system idle iowait irq softirq steal ..."""
    ticks = os.sysconf("SC_CLK_TCK")
    names = {f"cpu{cpu}" for cpu in cpus} or {"cpu"}
    lines = [line.split() for line in stat.read_text().splitlines()]
    busy = steal = 0
    for user, nice, system, _, _, irq, softirq, stolen in (map(int, f[1:9]) for f in lines if f and f[0] in names):
        busy += user + nice + system + irq + softirq
        steal += stolen
    return busy / ticks, steal / ticks


def error_s(cpus: int) -> float:
    """How far the busy seconds of so many CPUs, between two readings, may be off.

    The counter of each CPU has steps, and both readings round it, so the standard deviation of the difference is
    sqrt(cpus / 6) steps. This is 2.4 times as much.
    """
    return math.sqrt(cpus) / os.sysconf("SC_CLK_TCK")


def machine() -> str:
    """The running system, which owns the CPUs: equal in all processes that share /proc/stat."""
    try:
        return BOOT.read_text().strip()
    except OSError:  # gVisor lacks the file
        return platform.node()
