"""The doctor, on machines made of files and a driver made of answers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from snnbench import doctor, machine
from snnbench.doctor import Finding

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
    """What spoils measurements, and the step, by name; a step is always there."""
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
    (gpu,) = doctor.gpus(None)
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


class Driver:
    """A card that answers what it is asked, or refuses."""

    class NVMLError(Exception):
        pass

    class NVMLLibraryMismatchError(Exception):
        pass

    nvmlClocksEventReasonSwPowerCap = 4
    nvmlClocksEventReasonHwThermalSlowdown = 64

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"card {index}"

    def __getattr__(self, name: str) -> Any:
        def answer(handle: str) -> Any:
            if name not in self.answers:
                raise Driver.NVMLError(name)
            return self.answers[name]

        if not name.startswith("nvmlDevice"):
            raise AttributeError(name)
        return answer


QUIET = {
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetCurrentClocksEventReasons": 1,
    "nvmlDeviceGetPersistenceMode": 1,
}


def test_a_quiet_card() -> None:
    assert [one.state for one in doctor.gpus(Driver(**QUIET))] == ["well"]


def test_a_card_that_others_use_and_that_is_held_back() -> None:
    busy = QUIET | {
        "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=7)],
        "nvmlDeviceGetCurrentClocksEventReasons": 4 | 64,
        "nvmlDeviceGetPersistenceMode": 0,
    }
    found = [one.what for one in doctor.gpus(Driver(**busy)) if one.state == "spoils"]
    assert found[0] == "other processes compute there (7)"
    assert found[1] == "its clock is held back: the power limit, heat (hardware)"
    assert "first calls" in found[2]


def test_a_card_that_says_nothing_is_unknown() -> None:
    assert [one.state for one in doctor.gpus(Driver())] == ["unknown"]


def test_a_card_that_is_refused_is_named_and_the_others_are_looked_at() -> None:
    class Partly(Driver):
        def nvmlDeviceGetCount(self) -> int:
            return 2

        def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
            if index == 0:
                raise Driver.NVMLError("Insufficient Permissions")
            return f"card {index}"

    first, second = doctor.gpus(Partly(**QUIET))
    assert (first.name, first.state, second.name, second.state) == ("GPU 0", "unknown", "GPU 1", "well")
    assert "Insufficient Permissions" in first.what and first.step


def test_every_throttle_reason_is_one_that_the_driver_has() -> None:
    import pynvml

    assert all(hasattr(pynvml, name) for name in doctor.THROTTLES)


def test_this_machine_can_be_examined() -> None:
    names = [one.name for one in doctor.examine(machine.facts())]
    assert {"load", "governor", "threads", "CPU quota", "memory", "swap", "clock", "disk"} <= set(names)
