"""Throttling: counters of slowdowns of CPUs and GPUs for heat or power.

Counters need no look during a measurement: they are read before and after it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from snnbench.machine.gpus import ask, handles, nvidia_driver
from snnbench.machine.kernel_files import ROOT

COUNTERS = "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"


def counters(root: Path = ROOT, nvml: Any = None, card_index: int | None = None) -> dict[str, int]:
    """The counters that this machine shows, by name: events of all CPUs, and nanoseconds of one GPU.

    `card_index` is NVML's number of the cell's card. None adds no GPU: a cell on the CPU has no card, and a MIG slice
    has no number. Other cards are left out, since other people use them. Virtual CPUs show no counters.
    """
    counts = {str(path.relative_to(root)): int(path.read_text()) for path in sorted(root.glob(COUNTERS))}
    if card_index is None:
        return counts
    nvml = nvml or nvidia_driver()
    handle = dict(handles(nvml)).get(card_index)
    for name in ("POWER", "THERMAL") if handle is not None else ():
        status = ask(nvml, "nvmlDeviceGetViolationStatus", handle, getattr(nvml, f"NVML_PERF_POLICY_{name}"))
        if status is not None:  # not every card has the counters
            counts[f"gpu {card_index} {name.lower()}"] = int(status.violationTime)
    return counts


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """The names of the counters that went up."""
    return sorted(name for name, count in after.items() if count > before.get(name, count))
