"""Tests of the doctor's look at GPUs, on a fake driver with fixed answers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from snnbench.adapter.discovery import discover
from snnbench.machine import doctor, gpu_doctor
from snnbench.machine.diagnosis import Diagnosis

NEEDS = {"torch==2.13.0": 13, "jax[cuda13]==0.10.2": 13}


class Driver:
    """Cards that answer some questions and not others. `refused` are cards that the driver does not open."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0
    nvmlClocksEventReasonSwPowerCap = 4
    nvmlClocksEventReasonHwThermalSlowdown = 64

    class NVMLError(Exception):
        pass

    class NVMLLibraryMismatchError(Exception):
        pass

    def __init__(self, answers: dict[str, Any], cards: int = 1, refused: tuple[int, ...] = ()) -> None:
        self.answers, self.cards, self.refused = answers, cards, refused

    def nvmlDeviceGetCount(self) -> int:
        return self.cards

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        if index in self.refused:
            raise Driver.NVMLError("Insufficient Permissions")
        return f"card {index}"

    def __getattr__(self, name: str) -> Any:
        def answer(*arguments: object) -> Any:
            if name not in self.answers:
                raise Driver.NVMLError(name)
            given = self.answers[name]
            if isinstance(given, type) and issubclass(given, Exception):
                raise given
            return given

        if not name.startswith(("nvmlDevice", "nvmlSystem")):
            raise AttributeError(name)
        return answer


QUIET: dict[str, Any] = {
    "nvmlSystemGetDriverVersion": "580.65.06",
    "nvmlSystemGetCudaDriverVersion": 13000,
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetCurrentClocksEventReasons": 1,
    "nvmlDeviceGetClockInfo": 345,
    "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetPowerManagementLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetPersistenceMode": 1,
}


def look(answers: dict[str, Any], root: Path = Path("/none"), **driver: Any) -> dict[str, Diagnosis]:
    """The diagnoses by name. Asserts that each diagnosis that spoils has a step."""
    diagnoses = list(gpu_doctor.gpus(Driver(QUIET | answers, **driver), root, NEEDS))
    assert all(one.step for one in diagnoses if one.state == "spoils")
    assert len({one.name for one in diagnoses}) == len(diagnoses)
    return {one.name: one for one in diagnoses}


def test_quiet_gpu_has_no_warning() -> None:
    diagnoses = look({})
    of_card = {name.removeprefix("GPU 0 "): one for name, one in diagnoses.items() if name.startswith("GPU 0")}
    assert list(of_card) == list(gpu_doctor.LOOKS)
    assert {one.state for one in of_card.values()} == {diagnoses["driver"].state} == {"well"}
    assert of_card["clocks"].what == "SM 345 of 1980 MHz, memory 345 of 1980 MHz"
    assert of_card["power cap"].what == "700 W of 700 W by default"
    assert of_card["ECC"].what == "on, no uncorrected errors"


@pytest.mark.parametrize(
    ("subject", "answers", "text", "step"),
    [
        (
            "processes",
            {"nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=7), SimpleNamespace(pid=8)]},
            "other processes compute there (7, 8)",
            "CUDA_VISIBLE_DEVICES",
        ),
        (
            "throttling",
            {"nvmlDeviceGetCurrentClocksEventReasons": 4 | 64},
            "its clock is held back: the power limit, heat (hardware)",
            "nvidia-smi -lgc",
        ),
        (
            "power cap",
            {"nvmlDeviceGetPowerManagementLimit": 350_000},
            "350 W of 700 W by default",
            "nvidia-smi -i 0 -pl 700",
        ),
        ("ECC", {"nvmlDeviceGetTotalEccErrors": 3}, "3 uncorrected errors", "--gpu-reset"),
        ("ECC", {"nvmlDeviceGetEccMode": [0, 1]}, "off, and on after the next reboot", "-e 0"),
        ("persistence mode", {"nvmlDeviceGetPersistenceMode": 0}, "first calls take longer", "nvidia-smi -i 0 -pm 1"),
    ],
)
def test_warnings_about_a_gpu(subject: str, answers: dict[str, Any], text: str, step: str) -> None:
    spoiling = {name: one for name, one in look(answers).items() if one.state == "spoils"}
    assert list(spoiling) == [f"GPU 0 {subject}"]
    (diagnosis,) = spoiling.values()
    assert text in diagnosis.what and step in diagnosis.step


def test_gpu_without_ecc_and_with_raised_power_cap_is_well() -> None:
    diagnoses = look({"nvmlDeviceGetEccMode": [0, 0], "nvmlDeviceGetPowerManagementLimit": 720_000})
    assert (diagnoses["GPU 0 ECC"].state, diagnoses["GPU 0 ECC"].what) == ("well", "off")
    assert diagnoses["GPU 0 power cap"].state == "well"


def test_mig_slice_is_reported() -> None:
    assert "slice" in look({"nvmlDeviceGetMigMode": [1, 1]})["GPU 0 MIG"].what
    assert look({})["GPU 0 MIG"].what == "off"


def test_unanswered_queries_are_unknown() -> None:
    silent = {name: Driver.NVMLError for name in QUIET if name.startswith("nvmlDevice")}
    diagnoses = look(silent)
    assert [name for name in diagnoses if name.startswith("GPU")] == ["GPU 0"]
    assert diagnoses["GPU 0"] == Diagnosis(
        "GPU 0", "unknown", f"the driver does not say: {', '.join(gpu_doctor.LOOKS)}"
    )


def test_missing_driver_function_is_unknown() -> None:
    diagnoses = look({"nvmlDeviceGetComputeRunningProcesses": Driver.NVMLLibraryMismatchError})
    assert diagnoses["GPU 0"].what == "the driver does not say: processes"


def test_refused_gpu_is_reported_and_the_others_are_checked() -> None:
    diagnoses = look({}, cards=3, refused=(0, 2))
    assert diagnoses["GPU 0"].state == diagnoses["GPU 2"].state == "unknown"
    assert "Insufficient Permissions" in diagnoses["GPU 0"].what and diagnoses["GPU 0"].step
    assert diagnoses["GPU 1 clocks"].state == "well"
    none_left = look({}, cards=1, refused=(0,))
    assert list(none_left) == ["GPU", "GPU 0"] and "only CPU cases" in none_left["GPU"].what


def test_kernel_module_without_its_library_spoils(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version\n")
    (diagnosis,) = gpu_doctor.gpus(None, tmp_path, {})
    assert diagnosis.state == "spoils" and "reboot" in diagnosis.step
    (diagnosis,) = gpu_doctor.gpus(None, tmp_path / "other", {})
    assert diagnosis.state == "unknown"


def test_old_driver_names_the_pins_it_cannot_run() -> None:
    old = look({"nvmlSystemGetDriverVersion": "550.54.15", "nvmlSystemGetCudaDriverVersion": 12040})["driver"]
    assert old.state == "spoils"
    assert old.what == "driver 550.54.15 runs CUDA up to 12.4, which is too old for torch==2.13.0, jax[cuda13]==0.10.2"
    assert old.step.startswith("install driver 580 or newer; UV_TORCH_BACKEND=cu126 gets PyTorch for CUDA 12")


def test_step_omits_older_pytorch_if_it_cannot_help() -> None:
    cuda_12, cuda_11 = (
        Driver({"nvmlSystemGetCudaDriverVersion": 12040}),
        Driver({"nvmlSystemGetCudaDriverVersion": 11040}),
    )
    assert gpu_doctor.driver(cuda_12, {"jax[cuda13]==0.10.2": 13}).step == "install driver 580 or newer"
    assert gpu_doctor.driver(cuda_11, NEEDS).step == "install driver 580 or newer"
    assert gpu_doctor.driver(cuda_11, {"torch==2.13.0": 12}).step == "install driver 525 or newer"
    assert gpu_doctor.driver(cuda_12, {"torch==2.13.0": 12}).state == "well"
    assert gpu_doctor.driver(cuda_12, {"torch==9.9": 99}).step.startswith("install a driver for CUDA 99")


def test_driver_without_cuda_version_is_unknown() -> None:
    assert look({"nvmlSystemGetCudaDriverVersion": Driver.NVMLError})["driver"].state == "unknown"


def test_cuda_versions_of_the_adapters_pins() -> None:
    needs = gpu_doctor.pinned(discover().values())
    assert set(needs.values()) == {13}, "the step names driver 580, and docs/tutorials/first-table.md says so"
    for name in ("torch==", "jax[cuda13]==", "cuda-core[cu13]==", "cupy-cuda13x=="):
        assert any(requirement.startswith(name) for requirement in needs), name
    assert not any(requirement.startswith(("numpy", "ninja", "cuda-pathfinder", "jax==")) for requirement in needs)


def test_pytorch_build_changes_the_need_of_pytorch_only() -> None:
    for backend, expected in (("cu126", 12), ("cpu", None), ("auto", None), ("", 13)):
        needs = gpu_doctor.pinned(discover().values(), backend)
        assert needs.get("torch==2.13.0") == expected, backend
        assert needs["jax[cuda13]==0.10.2"] == 13


def test_installed_packages_give_their_cuda_version() -> None:
    versions = {"numpy": "2.5.2", "torch": "2.11.0+cu130", "nvidia-cuda-runtime-cu12": "12.8.90"}
    assert gpu_doctor.installed(versions) == {"torch 2.11.0+cu130": 13, "nvidia-cuda-runtime-cu12 12.8.90": 12}
    cuda_12 = Driver({"nvmlSystemGetCudaDriverVersion": 12040})
    assert "UV_TORCH_BACKEND" not in gpu_doctor.driver(cuda_12, gpu_doctor.installed(versions)).step, "uv is not asked"
    assert gpu_doctor.installed({"torch": "2.13.0+cpu"}) == {}


@pytest.mark.parametrize(
    ("params", "capabilities", "state"),
    [
        ("RmProfilingAdminOnly: 0\n", "0000000000000000", "well"),
        ("EnableMSI: 1\nRmProfilingAdminOnly: 1\n", "0000000000200000", "well"),
        ("RmProfilingAdminOnly: 1\n", "00000000a80425fb", "unknown"),
        ("EnableMSI: 1\n", "0000000000000000", "unknown"),
    ],
)
def test_profiling_permission(tmp_path: Path, params: str, capabilities: str, state: str) -> None:
    for name, text in {"driver/nvidia/params": params, "self/status": f"Name:\tx\nCapEff:\t{capabilities}\n"}.items():
        (tmp_path / "proc" / name).parent.mkdir(parents=True)
        (tmp_path / "proc" / name).write_text(text)
    diagnosis = look({}, tmp_path)["profiling"]
    assert diagnosis.state == state
    assert ("NVreg_RestrictProfilingToAdminUsers=0" in diagnosis.step) == (state == "unknown" and "AdminOnly" in params)


def test_locked_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_doctor.resource, "getrlimit", lambda which: (8 << 20, 8 << 20))
    diagnosis = gpu_doctor.locked_memory()
    assert diagnosis.state == "unknown" and diagnosis.what.startswith("8 MiB") and "memlock" in diagnosis.step
    monkeypatch.setattr(gpu_doctor.resource, "getrlimit", lambda which: (gpu_doctor.resource.RLIM_INFINITY,) * 2)
    assert gpu_doctor.locked_memory() == Diagnosis("locked memory", "well", "no limit")


def test_cuda_compilers_are_checked_only_with_a_gpu(tmp_path: Path) -> None:
    names = [one.name for one in doctor.gpus(Driver(QUIET), tmp_path, discover().values())]
    assert {"NVRTC", "driver", "GPU 0 clocks"} <= set(names)
    for hidden, names in ((Driver(QUIET, cards=0), ["GPU"]), (Driver(QUIET, refused=(0,)), ["GPU", "GPU 0"])):
        assert [one.name for one in doctor.gpus(hidden, tmp_path, discover().values())] == names


def test_every_queried_name_exists_in_pynvml() -> None:
    import pynvml

    constants = (*gpu_doctor.THROTTLES, "NVML_CLOCK_SM", "NVML_CLOCK_MEM")
    errors = ("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC", "NVMLError", "NVMLLibraryMismatchError")
    assert all(hasattr(pynvml, name) for name in (*constants, *errors, *QUIET))
