"""Throttling: how often CPUs and GPUs had to slow down, for heat or for power, since they were switched on.

Counters, so that nobody has to look while something is timed: read before and after, they say what came between.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from snnbench.machine import ROOT, ask, handles, nvidia_driver

COUNTERS = "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"


def counters(root: Path = ROOT, nvml: Any = None) -> dict[str, int]:
    """Every counter that this machine shows, by name: events of CPUs, nanoseconds of GPUs. Virtual ones show none."""
    found = {str(path.relative_to(root)): int(path.read_text()) for path in sorted(root.glob(COUNTERS))}
    nvml = nvml or nvidia_driver()
    for index, handle in handles(nvml):
        for name in ("POWER", "THERMAL"):
            status = ask(nvml, "nvmlDeviceGetViolationStatus", handle, getattr(nvml, f"NVML_PERF_POLICY_{name}"))
            if status is not None:  # not every card counts
                found[f"gpu {index} {name.lower()}"] = int(status.violationTime)
    return found


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """The names of the counters that went up."""
    return sorted(name for name, count in after.items() if count > before.get(name, count))
