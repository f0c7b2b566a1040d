"""Throttling: how often CPUs and GPUs had to slow down, for heat or for power, since they were switched on.

Counters, so that nobody has to look while something is timed: read before and after, they say what came between.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from snnbench.machine.gpus import ask, handles, nvidia_driver
from snnbench.machine.kernel_files import ROOT

COUNTERS = "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"


def counters(root: Path = ROOT, nvml: Any = None, card_index: int | None = None) -> dict[str, int]:
    """The counters that this machine shows, by name: events of all CPUs, and nanoseconds of one GPU.

    `card_index` is NVML's number of the card that a cell uses. None adds no GPU: a cell on the CPU uses no card, and a
    slice of a card has no number. Other cards are left out, since other people use them. Virtual CPUs show no counters.
    """
    counts = {str(path.relative_to(root)): int(path.read_text()) for path in sorted(root.glob(COUNTERS))}
    if card_index is None:
        return counts
    nvml = nvml or nvidia_driver()
    handle = dict(handles(nvml)).get(card_index)
    for name in ("POWER", "THERMAL") if handle is not None else ():
        status = ask(nvml, "nvmlDeviceGetViolationStatus", handle, getattr(nvml, f"NVML_PERF_POLICY_{name}"))
        if status is not None:  # not every card counts
            counts[f"gpu {card_index} {name.lower()}"] = int(status.violationTime)
    return counts


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """The names of the counters that went up."""
    return sorted(name for name, count in after.items() if count > before.get(name, count))
