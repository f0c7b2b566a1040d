"""Tests of the doctor, on machines made of files and a fake driver with fixed answers."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from snnbench.machine import description, doctor
from snnbench.machine.diagnosis import Diagnosis

CPU: dict[str, Any] = {
    "frequency_governors": ["performance"],
    "turbo": False,
    "physical_cores": 4,
    "usable_cpus": 4,
    "numa_nodes": 1,
    "quota_cpus": None,
}
MEMORY: dict[str, Any] = {"total_bytes": 16 << 30, "limit_bytes": None}


def spoiled(diagnoses: Any) -> dict[str, str]:
    """The diagnoses that spoil measurements, by name. Asserts that each has a step."""
    spoiling = [one for one in diagnoses if one.state == "spoils"]
    assert all(one.step for one in spoiling)
    return {one.name: one.what for one in spoiling}


def test_quiet_machine_has_no_warning() -> None:
    diagnoses = [*doctor.clock_speed(CPU), *doctor.threads(CPU, {}), *doctor.limits(CPU, MEMORY, Path("/none"))]
    assert {one.state for one in diagnoses} == {"well"}


def test_invisible_fact_is_unknown() -> None:
    hidden = CPU | {"frequency_governors": [], "turbo": None}
    assert [one.state for one in doctor.clock_speed(hidden)] == ["unknown", "unknown"]
    (clock,) = doctor.source_of_time(Path("/none"))
    assert clock.state == "unknown"
    (gpu,) = doctor.gpus(None, Path("/none"))
    assert gpu.state == "unknown" and "none is visible" in gpu.what


def test_varying_clock_speed_spoils() -> None:
    diagnoses = spoiled(doctor.clock_speed(CPU | {"frequency_governors": ["powersave"], "turbo": True}))
    assert "powersave" in diagnoses["governor"] and "warm" in diagnoses["turbo"]


def test_shared_cores_far_memory_and_variables_spoil() -> None:
    diagnoses = spoiled(doctor.threads(CPU | {"usable_cpus": 8, "numa_nodes": 2}, {"OMP_PROC_BIND": "close"}))
    assert diagnoses["threads"] == "8 threads would share 4 cores"
    assert "2 of them" in diagnoses["memory nodes"] and diagnoses["environment"] == "OMP_PROC_BIND=close"


def test_cpu_quota_spoils(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.stat").write_text("nr_periods 9\nnr_throttled 7\n")
    diagnoses = spoiled(doctor.limits(CPU | {"quota_cpus": 1.5}, MEMORY, tmp_path))
    assert diagnoses == {"CPU quota": "1.5 CPUs' worth of time, not CPUs; 7 periods were cut short"}
    limited = list(doctor.limits(CPU, MEMORY | {"limit_bytes": 4 << 30}, tmp_path))
    assert limited[-1] == Diagnosis("memory limit", "well", "4 of 16 GiB may be used")


@pytest.mark.parametrize(("name", "state"), [("tsc", "well"), ("hpet", "spoils"), ("hyperv_clocksource", "well")])
def test_clock_source(tmp_path: Path, name: str, state: str) -> None:
    folder = tmp_path / "sys/devices/system/clocksource/clocksource0"
    folder.mkdir(parents=True)
    (folder / "current_clocksource").write_text(f"{name}\n")
    (diagnosis,) = doctor.source_of_time(tmp_path)
    assert diagnosis.state == state


def test_full_disk_and_battery_power_spoil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=1 << 20)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: usage)
    assert "disk" in spoiled(doctor.disk(tmp_path))
    monkeypatch.setattr(doctor.psutil, "sensors_battery", lambda: SimpleNamespace(power_plugged=False))
    assert spoiled(doctor.battery()) == {"power": "on battery"}


def test_load_of_other_processes_spoils(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "WATCHED_S", 0.0)
    taken = {"foreign_cpus": 1.5, "stolen_cpus": 0.2, "own_cpus": 0.0}
    monkeypatch.setattr(doctor.contention, "between", lambda before, after: taken)
    diagnoses = spoiled(doctor.others())
    assert diagnoses["load"].startswith("others use 1.5 CPUs") and "0.2" in diagnoses["stolen time"]


def kernel(root: Path, vmstat: str = "oom_kill 0\n") -> Path:
    """A machine with a kernel that has all features workers need."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/clear_refs").write_text("")
    (root / "proc/vmstat").write_text(vmstat)
    return root


def test_kernel_with_all_features_is_well(tmp_path: Path) -> None:
    diagnoses = list(doctor.workers(kernel(tmp_path)))
    assert [(one.name, one.state) for one in diagnoses] == [("workers", "well"), ("peak memory", "well")]
    assert (tmp_path / "proc/self/clear_refs").read_text() == "5"


def test_kernel_without_clear_refs_has_no_peak_memory(tmp_path: Path) -> None:
    (kernel(tmp_path) / "proc/self/clear_refs").unlink()
    diagnoses = spoiled(doctor.workers(tmp_path))
    assert list(diagnoses) == ["peak memory"] and "memory is `unavailable`" in diagnoses["peak memory"]


def test_missing_pidfd_spoils_but_missing_vmstat_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel(tmp_path) / "proc/vmstat").unlink()
    uncounted = next(diagnosis for diagnosis in doctor.workers(tmp_path) if diagnosis.name == "workers")
    assert uncounted.state == "unknown" and uncounted.what.endswith("such an end is called a crash")

    def not_implemented(pid: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(doctor.os, "pidfd_open", not_implemented)
    assert "lacks pidfd_open" in spoiled(doctor.workers(kernel(tmp_path / "other")))["workers"]


def test_kernel_without_oom_count_is_unknown(tmp_path: Path) -> None:
    first, _ = doctor.workers(kernel(tmp_path, "nr_free_pages 1\n"))
    assert first.state == "unknown"


def test_this_machine_can_be_examined() -> None:
    names = [one.name for one in doctor.examine(description.facts())]
    assert {"load", "governor", "threads", "CPU quota", "memory", "swap", "clock", "disk"} <= set(names)
    assert {"workers", "peak memory", "C compiler", "C++ compiler", "Python headers"} <= set(names)
