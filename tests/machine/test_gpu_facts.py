"""Tests of the facts of GPUs, on a made-up driver with fixed answers."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from snnbench.machine import description, gpus
from tests.machine.test_description import facts_of


class NoAnswer(Exception):
    """The made-up driver's error for a question that its card cannot answer."""


class TooOld(Exception):
    """pynvml's error if the driver lacks a function."""


def refuse(*arguments: object) -> object:
    raise NoAnswer("Insufficient Permissions")


def lack(*arguments: object) -> object:
    raise TooOld


def driver(**changes: object) -> Any:
    answers: dict[str, Any] = {
        "NVMLError": NoAnswer,
        "NVMLLibraryMismatchError": TooOld,
        "NVML_CLOCK_SM": 1,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: "NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=150_754_820_096),
        "nvmlSystemGetDriverVersion": lambda: "580.65.06",
        "nvmlSystemGetCudaDriverVersion": lambda: 12080,
        "nvmlDeviceGetUUID": lambda handle: "GPU-secret",
        "nvmlDeviceGetCudaComputeCapability": lambda handle: (9, 0),
        "nvmlDeviceGetPowerManagementLimit": lambda handle: 700_000,
        "nvmlDeviceGetMaxClockInfo": lambda handle, clock: 1980,
        "nvmlDeviceGetEccMode": lambda handle: [1, 1],
        "nvmlDeviceGetMigMode": lambda handle: [0, 1],
    }
    return SimpleNamespace(**answers | changes)


def test_facts_of_a_gpu() -> None:
    facts = gpus.gpu(driver(), 0)
    assert re.fullmatch("[0-9a-f]{12}", facts.pop("uuid"))
    assert facts == {
        "name": "NVIDIA H200",
        "memory_bytes": 150_754_820_096,
        "driver": "580.65.06",
        "cuda_driver": "12.8",
        "compute_capability": "9.0",
        "power_limit_watts": 700.0,
        "clock_max_hz": 1_980_000_000,
        "ecc": True,
        "mig": False,
    }


def test_unanswered_gpu_queries_are_null() -> None:
    facts = gpus.gpu(driver(nvmlDeviceGetEccMode=refuse, nvmlDeviceGetMigMode=refuse), 0)
    assert facts["ecc"] is facts["mig"] is None
    assert description.slug(facts_of() | {"gpus": [facts]}) == "h200"


def test_missing_driver_function_is_null() -> None:
    assert gpus.gpu(driver(nvmlDeviceGetMigMode=lack), 0)["mig"] is None


def test_refused_gpu_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(index: int) -> object:
        return refuse() if index == 0 else f"card {index}"

    partly = driver(nvmlDeviceGetCount=lambda: 3, nvmlDeviceGetHandleByIndex=opened)
    assert list(gpus.handles(partly)) == [(1, "card 1"), (2, "card 2")]
    assert list(gpus.unopened(partly)) == [(0, "Insufficient Permissions")]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(gpus, "nvidia_driver", lambda: partly)
    monkeypatch.setattr(description, "nvidia_driver", lambda: partly)
    assert len(description.facts()["gpus"]) == 2 and gpus.has_cuda()
    monkeypatch.setattr(gpus, "nvidia_driver", lambda: driver(nvmlDeviceGetHandleByIndex=refuse))
    monkeypatch.setattr(description, "nvidia_driver", lambda: driver(nvmlDeviceGetHandleByIndex=refuse))
    assert description.facts()["gpus"] == [] and not gpus.has_cuda()


def test_no_driver_has_no_cards() -> None:
    assert list(gpus.handles(None)) == list(gpus.unopened(None)) == []


def test_hidden_gpus_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "nvidia_driver", driver)
    monkeypatch.setattr(description, "nvidia_driver", driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus.has_cuda()
    for visible, expected in (("0", True), ("GPU-1,GPU-2", True), ("", False), ("-1", False), ("NoDevFiles", False)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert gpus.has_cuda() == expected
        assert bool(description.facts()["gpus"]) == expected
