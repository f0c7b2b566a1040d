"""What only a CUDA device can show. Run with `pytest -m gpu`, in a Python that has the libraries."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from snnbench import environments, machine
from snnbench.adapter import Adapter
from snnbench.library import discover
from snnbench.process import environment, run
from snnbench.wire import Reply, Request
from tests.test_libraries import CASE

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not machine.has_cuda(), reason="no CUDA device here"),
]

GPU = CASE.resized(device="cuda", neurons=256, batch=8, time_steps=64)
CONTENDERS = [
    ("fused", "torch", "torch"),
    ("fused", "triton", "triton"),
    ("fused", "cuda", "cuda"),
    ("fused", "cuda-lowmem", "cuda"),
    ("fused", "cuda-graph", "cuda"),
    ("torch-loop", "unbind", "torch"),
    ("jax-scan", "default", "jax"),
    ("snntorch", "unbind", "snntorch"),
    ("norse", "box", "norse"),
    ("sinabs", "default", "sinabs"),
    ("rockpool", "torch", "rockpool"),
    ("spikingjelly", "default", "spikingjelly"),
    ("spyx", "linear-outside", "spyx"),
]
INSTALLED = [(name, variant) for name, variant, package in CONTENDERS if find_spec(package)]
FRAMEWORKS = [pair for pair in INSTALLED if pair[0] in ("torch-loop", "jax-scan")]
PHASES = ("inference", "forward", "backward", "train")


def ask(library: str, variant: str, measure: Any, **changes: Any) -> Reply:
    adapter: Adapter = discover()[library]
    if library == "snntorch":
        changes = {"reset": "zero", "detach_reset": True, **changes}
    request = Request(measure=measure, case=GPU.resized(**changes), variant=variant, phases=PHASES, repetitions=3)
    ending = run(Path(sys.executable), adapter.path, request, environment(1, environments.home()), timeout_s=300)
    assert ending.reply is not None, ending.log
    return ending.reply


@pytest.mark.parametrize(("library", "variant"), INSTALLED)
def test_exam_and_spot_check_are_exact(library: str, variant: str) -> None:
    assert ask(library, variant, "verify").outcome == {"status": "measured", "verdict": "exact"}


@pytest.mark.parametrize(("library", "variant"), FRAMEWORKS)
def test_tf32_is_told_from_ieee_by_its_verdict(library: str, variant: str) -> None:
    reply = ask(library, variant, "verify", precision="tf32")
    assert reply.outcome == {"status": "measured", "verdict": "equivalent"}
    assert reply.settings["matmul_precision"] in ("tf32", "tensorfloat32")


@pytest.mark.parametrize(("library", "variant"), FRAMEWORKS)
def test_a_pass_is_not_faster_than_its_matrix_product_could_be(library: str, variant: str) -> None:
    case = {"neurons": 4096, "batch": 16, "time_steps": 500}
    reply = ask(library, variant, "time", **case)
    assert reply.outcome["status"] == "measured", reply.outcome
    operations = 2 * 500 * 16 * 4096**2
    fastest_ns = operations / 100e12 * 1e9  # no device computes 100 TFLOP/s in strict float32
    for phase in ("inference", "forward"):
        timing = reply.phases[phase]
        assert min(timing["repetitions_ns"]) / timing["passes"] > fastest_ns
        assert timing["floor_ns"] > fastest_ns, "and neither is the floor"
    assert all(1 <= timing["times_floor"] < 100 for timing in reply.phases.values())


@pytest.mark.parametrize(("library", "variant"), FRAMEWORKS)
def test_device_memory_is_counted(library: str, variant: str) -> None:
    reply = ask(library, variant, "memory")
    spikes_bytes = 4 * 64 * 8 * 256
    device = reply.memory["device"]
    assert device["peak_bytes"] >= spikes_bytes
    assert device["retained_bytes"] >= spikes_bytes
    assert reply.memory["static_bytes"] >= 2 * spikes_bytes
    assert device["reserved_bytes"] is None or device["reserved_bytes"] >= device["peak_bytes"]


@pytest.mark.parametrize(("library", "variant"), FRAMEWORKS[:1])
def test_a_case_too_large_for_the_device_is_out_of_its_memory(library: str, variant: str) -> None:
    reply = ask(library, variant, "verify", neurons=16384, batch=256, time_steps=2000)
    assert (reply.outcome["status"], reply.outcome["kind"]) == ("failed", "oom-device")
