"""Tests of the doctor, on machines made of files and a fake driver with fixed answers."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from snnbench.machine import description, doctor
from snnbench.machine.finding import Finding

CPU: dict[str, Any] = {
    "frequency_governors": ["performance"],
    "turbo": False,
    "physical_cores": 4,
    "usable_cpus": 4,
    "numa_nodes": 1,
    "quota_cpus": None,
}
MEMORY: dict[str, Any] = {"total_bytes": 16 << 30, "limit_bytes": None}


def spoiled(findings: Any) -> dict[str, str]:
    """The findings that spoil measurements, by name. Asserts that each has a step."""
    found = [one for one in findings if one.state == "spoils"]
    assert all(one.step for one in found)
    return {one.name: one.what for one in found}


def test_a_quiet_machine_has_nothing_that_spoils() -> None:
    findings = [*doctor.clock_speed(CPU), *doctor.threads(CPU, {}), *doctor.limits(CPU, MEMORY, Path("/none"))]
    assert {one.state for one in findings} == {"well"}


def test_what_cannot_be_seen_is_unknown() -> None:
    hidden = CPU | {"frequency_governors": [], "turbo": None}
    assert [one.state for one in doctor.clock_speed(hidden)] == ["unknown", "unknown"]
    (clock,) = doctor.source_of_time(Path("/none"))
    assert clock.state == "unknown"
    (gpu,) = doctor.gpus(None, Path("/none"))
    assert gpu.state == "unknown" and "none is visible" in gpu.what


def test_clocks_that_follow_the_load() -> None:
    found = spoiled(doctor.clock_speed(CPU | {"frequency_governors": ["powersave"], "turbo": True}))
    assert "powersave" in found["governor"] and "warm" in found["turbo"]


def test_threads_that_share_cores_far_memory_and_variables() -> None:
    found = spoiled(doctor.threads(CPU | {"usable_cpus": 8, "numa_nodes": 2}, {"OMP_PROC_BIND": "close"}))
    assert found["threads"] == "8 threads would share 4 cores"
    assert "2 of them" in found["memory nodes"] and found["environment"] == "OMP_PROC_BIND=close"


def test_a_quota_is_no_number_of_cpus(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.stat").write_text("nr_periods 9\nnr_throttled 7\n")
    found = spoiled(doctor.limits(CPU | {"quota_cpus": 1.5}, MEMORY, tmp_path))
    assert found == {"CPU quota": "1.5 CPUs' worth of time, not CPUs; 7 periods were cut short"}
    limited = list(doctor.limits(CPU, MEMORY | {"limit_bytes": 4 << 30}, tmp_path))
    assert limited[-1] == Finding("memory limit", "well", "4 of 16 GiB may be used")


@pytest.mark.parametrize(("name", "state"), [("tsc", "well"), ("hpet", "spoils"), ("hyperv_clocksource", "well")])
def test_the_source_of_time(tmp_path: Path, name: str, state: str) -> None:
    folder = tmp_path / "sys/devices/system/clocksource/clocksource0"
    folder.mkdir(parents=True)
    (folder / "current_clocksource").write_text(f"{name}\n")
    (found,) = doctor.source_of_time(tmp_path)
    assert found.state == state


def test_a_full_disk_and_an_empty_battery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=1 << 20)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: usage)
    assert "disk" in spoiled(doctor.disk(tmp_path))
    monkeypatch.setattr(doctor.psutil, "sensors_battery", lambda: SimpleNamespace(power_plugged=False))
    assert spoiled(doctor.battery()) == {"power": "on battery"}


def test_others_that_compute_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "WATCHED_S", 0.0)
    taken = {"foreign_cpus": 1.5, "stolen_cpus": 0.2, "own_cpus": 0.0}
    monkeypatch.setattr(doctor.contention, "between", lambda before, after: taken)
    found = spoiled(doctor.others())
    assert found["load"].startswith("others use 1.5 CPUs") and "0.2" in found["stolen time"]


def kernel(root: Path, vmstat: str = "oom_kill 0\n") -> Path:
    """A machine with a kernel that has all features workers need."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/clear_refs").write_text("")
    (root / "proc/vmstat").write_text(vmstat)
    return root


def test_a_kernel_with_all_that_workers_need(tmp_path: Path) -> None:
    found = list(doctor.workers(kernel(tmp_path)))
    assert [(one.name, one.state) for one in found] == [("workers", "well"), ("peak memory", "well")]
    assert (tmp_path / "proc/self/clear_refs").read_text() == "5"


def test_a_kernel_without_clear_refs_measures_no_memory(tmp_path: Path) -> None:
    (kernel(tmp_path) / "proc/self/clear_refs").unlink()
    found = spoiled(doctor.workers(tmp_path))
    assert list(found) == ["peak memory"] and "memory is `unavailable`" in found["peak memory"]


def test_a_sandbox_without_pidfd_starts_no_worker_and_one_without_vmstat_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kernel(tmp_path) / "proc/vmstat").unlink()
    uncounted = next(finding for finding in doctor.workers(tmp_path) if finding.name == "workers")
    assert uncounted.state == "unknown" and uncounted.what.endswith("such an end is called a crash")

    def not_implemented(pid: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(doctor.os, "pidfd_open", not_implemented)
    assert "lacks pidfd_open" in spoiled(doctor.workers(kernel(tmp_path / "other")))["workers"]


def test_a_kernel_that_does_not_count_kills_is_unknown(tmp_path: Path) -> None:
    first, _ = doctor.workers(kernel(tmp_path, "nr_free_pages 1\n"))
    assert first.state == "unknown"


def test_this_machine_can_be_examined() -> None:
    names = [one.name for one in doctor.examine(description.facts())]
    assert {"load", "governor", "threads", "CPU quota", "memory", "swap", "clock", "disk"} <= set(names)
    assert {"workers", "peak memory", "C compiler", "Python headers"} <= set(names)
