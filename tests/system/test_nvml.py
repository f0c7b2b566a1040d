"""Tests of the code that queries NVML, with the real pynvml on a stub of NVIDIA's library, in separate processes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from snnbench.worker import clocks

ROOT = Path(__file__).parents[2]
STUB = Path(__file__).parents[1] / "stub_nvml.c"
QUESTIONS = """
import json
from dataclasses import asdict
from pathlib import Path

from snnbench.machine import description, doctor, gpus, throttling

nowhere = Path("/nowhere")
facts, visible = description.facts(), gpus.visible()
doctor.WATCHED_S = 0.0
print(json.dumps({
    "gpus": facts["gpus"],
    "model": facts["model"],
    "has_cuda": gpus.has_cuda(),
    "visible": [asdict(card) for card in visible],
    "others": [gpus.Watch(card).others() for card in visible],
    "others_on_refused": [gpus.Watch(gpus.Card("GPU-x", index)).others() for index in (0, 1, 2)],
    "counters": {str(index): throttling.counters(nowhere, card_index=index) for index in (None, 0, 1, 2)},
    "doctor": {one.name: asdict(one) for one in doctor.gpus(gpus.nvidia_driver(), nowhere)},
    "examined": [one.name for one in doctor.examine(facts)],
}))
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, str]]:
    """The environment of a process that finds the stub, compiled with these macros."""

    def compiled(*macros: str) -> dict[str, str]:
        folder = tmp_path_factory.mktemp("nvml")
        options = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *(f"-D{macro}" for macro in macros))
        subprocess.run([gcc(), *options, str(STUB), "-o", str(folder / "libnvidia-ml.so.1")], check=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "UV_"))}
        libraries = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
        return inherited | {"LD_LIBRARY_PATH": libraries, "PYTHONPATH": str(ROOT)}

    return compiled


def gcc() -> str:
    """The compiler's path. If it is missing, the test is skipped; in CI it fails."""
    if path := shutil.which("gcc"):
        return path
    if os.environ.get("CI"):
        pytest.fail("no gcc on the PATH")
    pytest.skip("no gcc on the PATH")


def python(environment: dict[str, str], *arguments: str) -> str:
    """The output of a process with the stub."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(environment: dict[str, str]) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(python(environment, "-c", QUESTIONS))
    return reply


def uuid(index: int) -> str:
    return f"GPU-{index:08d}-0000-0000-0000-000000000000"


def test_refused_gpu_is_left_out_everywhere(stub: Callable[..., dict[str, str]]) -> None:
    facts = answers(stub())
    (gpu,) = facts["gpus"]
    assert (gpu["name"], gpu["driver"], gpu["cuda_driver"]) == ("NVIDIA Stub", "580.65.06", "13.0")
    assert (gpu["power_limit_watts"], gpu["clock_max_hz"], gpu["ecc"], gpu["mig"]) == (350, 1_980_000_000, True, None)
    assert facts["has_cuda"] and ", NVIDIA Stub, " in facts["model"]
    assert facts["visible"] == [
        {"uuid": uuid(0), "index": 0, "model": "NVIDIA Stub", "memory_bytes": 0, "exclusive": False}
    ]
    assert facts["others"] == [True], "process 4242 computes there"
    assert facts["others_on_refused"] == [True, False, False]
    assert facts["counters"] == {"None": {}, "0": {"gpu 0 power": 100}, "1": {}, "2": {}}


def test_doctor_reports_a_refused_and_a_disturbed_gpu(stub: Callable[..., dict[str, str]]) -> None:
    facts = answers(stub())
    refused = facts["doctor"]["GPU 1"]
    assert refused["state"] == "unknown" and "Insufficient Permissions" in refused["what"] and refused["step"]
    spoiling = {name: one["what"] for name, one in facts["doctor"].items() if one["state"] == "spoils"}
    assert spoiling == {
        "GPU 0 processes": "other processes compute there (4242)",
        "GPU 0 throttling": "its clock is held back: the power limit",
        "GPU 0 power cap": "350 W of 700 W by default",
        "GPU 0 ECC": "2 uncorrected errors since the driver was loaded",
        "GPU 0 persistence mode": "off: the driver leaves between processes, so first calls take longer",
    }
    assert facts["doctor"]["GPU 0 clocks"]["what"] == "SM 345 of 1980 MHz, memory 2619 of 2619 MHz"
    assert facts["doctor"]["GPU 0"]["what"] == "the driver does not say: MIG"
    assert facts["doctor"]["driver"]["state"] == "well"
    assert set(facts["doctor"]) <= set(facts["examined"])


def test_gpu_after_a_refused_one_keeps_its_number(stub: Callable[..., dict[str, str]]) -> None:
    environment = stub("REFUSED=0")
    for listed in ({}, {"CUDA_VISIBLE_DEVICES": "0"}):  # CUDA counts the cards that it can open
        facts = answers(environment | listed)
        assert facts["visible"] == [
            {"uuid": uuid(1), "index": 1, "model": "NVIDIA Stub", "memory_bytes": 0, "exclusive": False}
        ]
        assert facts["others"] == [True] and facts["others_on_refused"] == [False, True, False]
        assert facts["counters"] == {"None": {}, "0": {}, "1": {"gpu 1 power": 101}, "2": {}}
        assert {"GPU 0", "GPU 1 clocks"} <= set(facts["doctor"])


def test_driver_before_r510_crashes_nothing(stub: Callable[..., dict[str, str]]) -> None:
    facts = answers(stub("BEFORE_R510"))
    assert facts["gpus"][0]["driver"] == "470.256.02" and facts["has_cuda"]
    assert facts["others"] == [False], "it does not list processes"
    assert facts["doctor"]["GPU 0"]["what"] == "the driver does not say: processes, throttling, MIG"


def test_doctor_command_prints_its_findings(stub: Callable[..., dict[str, str]]) -> None:
    lines = python(stub("BEFORE_R510"), "-m", "snnbench", "doctor").splitlines()
    (driver,) = [line for line in lines if "  driver: " in line]
    assert driver.startswith("problem  driver: driver 470.256.02 runs CUDA up to 11.4, which is too old for ")
    for requirement in ("torch==", "jax[cuda13]==", "cuda-core[cu13]==", "cupy-cuda13x=="):
        assert requirement in driver
    assert driver.endswith("-> install driver 580 or newer"), "and PyTorch for CUDA 12 wants a newer one, too"
    assert any(
        line.startswith("warning  GPU 1: the driver does not open it (Insufficient Permissions)") for line in lines
    )
    assert " problem" in lines[-1]


def test_doctor_command_examines_the_workers_python(stub: Callable[..., dict[str, str]]) -> None:
    lines = python(stub(), "-m", "snnbench", "doctor", "--env", "current").splitlines()
    (nvrtc,) = [line for line in lines if "  NVRTC: " in line]
    assert "into their environments" not in nvrtc
    lines = python(stub("BEFORE_R510"), "-m", "snnbench", "doctor", "--env", "current").splitlines()
    (driver,) = [line for line in lines if "  driver: " in line]
    assert "driver 470.256.02" in driver and "cuda-core[cu13]==" not in driver, "pins are for managed environments"


@pytest.mark.parametrize(
    ("visible", "macros", "expected"),
    [
        (uuid(0), [], {"sm": 345, "memory": 2619}),
        (uuid(1), [], {"sm": 345, "memory": 2619}),  # the driver opens it by its UUID
        (None, [], {"sm": 345, "memory": 2619}),
        ("0", ["REFUSED=0"], {}),
        ("GPU-9", [], {}),
        ("MIG-1", [], {}),
    ],
)
def test_worker_reads_the_clocks_of_its_gpu(
    stub: Callable[..., dict[str, str]], visible: str | None, macros: list[str], expected: dict[str, int]
) -> None:
    """Without pynvml: a library's environment lacks it."""
    environment = stub(*macros) | ({"CUDA_VISIBLE_DEVICES": visible} if visible else {})
    code = """
import json, sys
from snnbench.worker import clocks
print(json.dumps([clocks.mhz(), "pynvml" in sys.modules]))
"""
    assert json.loads(python(environment, "-c", code)) == [expected, False]


def test_missing_driver_has_no_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "LIBRARY", "libnothing-of-this-name.so.1")
    assert clocks.mhz() == {}
