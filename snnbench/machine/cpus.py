"""CPUs: the CPUs that this process may use, and the CPUs to pin a worker to."""

import os
from collections.abc import Collection
from pathlib import Path

from snnbench.machine.kernel_files import ROOT, cgroup, integer_in, text_in

CPUS = "sys/devices/system/cpu"


def usable_cpus(root: Path = ROOT, allowed: Collection[int] | None = None) -> int:
    """The number of CPUs this process can keep busy: its allowed CPUs, or fewer if its control group has a quota."""
    count, quota = len(allowed_cpus(allowed)), quota_cpus(root)
    return count if quota is None else min(count, max(1, int(quota)))


def cpus(count: int, root: Path = ROOT, allowed: Collection[int] | None = None, lane: int = 0) -> list[int]:
    """The CPUs to pin a worker of `count` threads to. Raises ValueError.

    One CPU of every core comes before a second of any, large cores before small ones, one package before the next. Each
    `lane` has different CPUs.
    """
    usable = usable_cpus(root, allowed)
    if not 1 <= count * (lane + 1) <= usable:
        beside = f" beside {lane} others as wide" if lane else ""
        raise ValueError(f"threads = {count}{beside}: expected 1 to {usable}, the CPUs that this process can use")
    ranked = []
    taken: dict[str, int] = {}
    for cpu in sorted(allowed_cpus(allowed)):
        folder = root / CPUS / f"cpu{cpu}"
        core = text_in(folder / "topology/thread_siblings_list") or str(cpu)
        taken[core] = taken.get(core, 0) + 1
        capacity = integer_in(folder / "cpu_capacity") or 0
        ranked.append((taken[core], -capacity, integer_in(folder / "topology/physical_package_id") or 0, cpu))
    return [cpu for *_, cpu in sorted(ranked)[count * lane : count * (lane + 1)]]


def quota_cpus(root: Path) -> float | None:
    """The control group's quota of CPU time, in CPUs; None without a quota."""
    pairs = [text.split() for text in cgroup(root, "cpu", "cpu.max")]
    versions_1 = (cgroup(root, "cpu", name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    pairs += [list(pair) for pair in zip(*versions_1, strict=False)]
    return min((int(quota) / int(period) for quota, period in pairs if quota.isdigit()), default=None)


def allowed_cpus(allowed: Collection[int] | None) -> Collection[int]:
    return os.sched_getaffinity(0) if allowed is None else allowed
