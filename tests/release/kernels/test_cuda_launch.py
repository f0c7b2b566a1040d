"""Tests of `lif_cuda.launch` with the real cuda-core, a stub as the driver, and an emulator as the GPU."""

import ctypes
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from snnbench.kernels import lif_cuda
from snnbench.kernels.compiler import Unavailable
from tests import stub_driver
from tests.emulator import compile_builds, needed

ROOT = Path(__file__).parents[3]
STUB = Path(__file__).parents[2] / "stub_libcuda.c"


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The observations of a process with the stub as its driver. NVRTC compiles real machine code first."""
    folder = tmp_path_factory.mktemp("stub")
    command = [needed("gcc"), "-Wall", "-Werror", "-shared", "-fPIC", str(STUB), "-o", str(folder / "libcuda.so.1")]
    subprocess.run(command, check=True)
    builds = stub_driver.builds()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SNNBENCH_HOME", str(folder / "home"))
        try:
            for build in builds:
                lif_cuda.cubin(build, stub_driver.ARCH)
        except Unavailable as error:
            if os.environ.get("CI"):
                pytest.fail(str(error))
            pytest.skip(str(error))
        library = folder / "kernels.so"
        given = pickle.dumps({"library": library, "names": compile_builds(builds, library)})
        done = subprocess.run(
            [sys.executable, "-m", "tests.stub_driver"],
            input=given,
            capture_output=True,
            cwd=ROOT,
            env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
            timeout=300,
        )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def test_contract_holds_for_kernels_that_cuda_core_launches(observed: dict[str, Any]) -> None:
    launches = observed["contract"]
    assert {launch["kernel"] for launch in launches} == {"lif_forward", "lif_backward"}
    forwards = len(stub_driver.PAIRS) + len(stub_driver.FORMATS) + 2 + 2  # check_forward, check_both_passes, check_size
    backwards = len(stub_driver.PAIRS) + 2 + 2
    assert len(launches) == forwards + backwards
    assert all(launch["right_module"] for launch in launches)


def test_grid_and_block_follow_the_strip(observed: dict[str, Any]) -> None:
    for launch in observed["contract"]:
        assert launch["block"] == [launch["threads"], 1, 1]
        columns = launch["arguments"][stub_driver.PARAMETERS[launch["kernel"]].index(ctypes.c_longlong)]
        blocks = {37: 1, 150: 3, 36: 1}[columns]
        assert launch["grid"] == [blocks, 1, 1]
    assert {launch["threads"] for launch in observed["contract"]} == {64, 128}


def test_kernel_is_launched_on_the_current_stream(observed: dict[str, Any]) -> None:
    handle = stub_driver.STREAM
    assert [launch["stream"] for launch in observed[f"stream {handle}"]] == [handle, handle]


def test_default_stream_is_the_legacy_stream(observed: dict[str, Any]) -> None:
    legacy = lif_cuda.LEGACY_STREAM
    assert legacy == 1
    assert [launch["stream"] for launch in observed["stream 0"]] == [legacy, legacy]


@pytest.mark.parametrize("stream", [0, stub_driver.STREAM])
def test_kernel_gets_the_addresses_and_numbers_of_its_signature(observed: dict[str, Any], stream: int) -> None:
    launches = {launch["kernel"]: launch["arguments"] for launch in observed[f"stream {stream}"]}
    assert launches == observed["expected arguments"]


def test_module_is_loaded_once(observed: dict[str, Any]) -> None:
    assert 0 < observed["modules"] <= len(stub_driver.builds())
    loaded_later = observed["modules after more launches"] - observed["modules"]
    assert loaded_later == 1, "the backward pass without sums"


def test_thread_without_a_context_gets_one(observed: dict[str, Any]) -> None:
    assert observed["launches of a new thread"] == 2


def test_error_of_the_driver_is_raised(observed: dict[str, Any]) -> None:
    assert observed["error"].startswith(f"error {stub_driver.LAUNCH_FAILED}: ")
