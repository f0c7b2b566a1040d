"""Tests of throttling counters, from a fake /sys and a fake driver."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from snnbench.machine.throttling import counters, grown


class NVMLError(Exception):
    """The driver's error for a question that a card cannot answer."""


class NVMLLibraryMismatchError(Exception):
    """pynvml's error for a function that the driver lacks."""


def driver(power_ns: int) -> Any:
    """A driver with two cards; the second has no counters."""

    def violation(handle: int, policy: str) -> Any:
        if handle == 1:
            raise NVMLError
        return SimpleNamespace(violationTime=power_ns if policy == "power policy" else 0)

    return SimpleNamespace(
        NVMLError=NVMLError,
        NVMLLibraryMismatchError=NVMLLibraryMismatchError,
        NVML_PERF_POLICY_POWER="power policy",
        NVML_PERF_POLICY_THERMAL="thermal policy",
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetViolationStatus=violation,
    )


def sysfs(root: Path, cpu: int, count: int) -> None:
    """Write a CPU that was throttled `count` times."""
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "core_throttle_count").write_text(f"{count}\n")


def test_increased_counters_are_named(tmp_path: Path) -> None:
    sysfs(tmp_path, 0, 3)
    sysfs(tmp_path, 1, 5)
    before = counters(tmp_path, driver(10), card_index=0)
    assert sorted(before.values()) == [0, 3, 5, 10]
    sysfs(tmp_path, 1, 6)
    after = counters(tmp_path, driver(11), card_index=0)
    assert grown(before, before) == []
    assert grown(before, after) == [
        "gpu 0 power",
        "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
    ]


def test_only_the_card_in_use_is_read(tmp_path: Path) -> None:
    sysfs(tmp_path, 0, 3)
    cpu = {"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": 3}
    assert counters(tmp_path, driver(10)) == cpu, "a cell on the CPU, or on a slice of a card, has no card's number"
    assert counters(tmp_path, driver(10), card_index=1) == cpu, "this card counts nothing"
    assert counters(tmp_path, driver(10), card_index=7) == cpu, "no such card"
    assert counters(tmp_path, driver(10), card_index=0) == cpu | {"gpu 0 power": 10, "gpu 0 thermal": 0}


def test_new_counter_is_ignored() -> None:
    assert grown({}, {"gpu 0 power": 5}) == []
