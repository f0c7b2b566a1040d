"""What only a CUDA device can show. Run with `pytest -m gpu`, in a Python that has the libraries."""

import sys
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from snnbench import environments, machine
from snnbench.case import PROFILES
from snnbench.library import discover
from snnbench.process import environment, run
from snnbench.wire import Reply, Request
from tests.test_libraries import CASE

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not machine.has_cuda(), reason="no CUDA device here"),
]

GPU = CASE.resized(device="cuda", neurons=256, batch=8, time_steps=64)
SHORT = {"compile": 6}
"""Steps where a loop over time is unrolled."""
PHASES = ("inference", "forward", "backward", "train")
ADAPTERS = discover()
CONTENDERS = [
    (library, name)
    for library, adapter in ADAPTERS.items()
    for name, variant in adapter.variants.items()
    if "cuda" in variant.devices
]
FRAMEWORKS = [("torch-loop", "unbind"), ("jax-scan", "default")]
KERNELS = [one for one in CONTENDERS if ADAPTERS[one[0]].variants[one[1]].provider]


def python_of(library: str, name: str) -> Path:
    """The managed environment where it was made (`snnbench env sync`), or this Python where it has the library."""
    planned = environments.plan(ADAPTERS[library], name, cuda=True)
    if environments.is_ready(planned):
        return planned.python
    wanted = ADAPTERS[library].variants[name].pins.distribution
    try:
        metadata.version(wanted)
    except metadata.PackageNotFoundError:
        pytest.skip(f"neither `snnbench env sync {planned.adapter}` nor {wanted} in this Python")
    return Path(sys.executable)


def ask(library: str, name: str, measure: Any, **changes: Any) -> Reply:
    """What a worker replies, in the first profile and surrogate that the contender does not refuse."""
    adapter = ADAPTERS[library]
    variant, python = adapter.variants[name], python_of(library, name)
    asked: dict[str, Any] = {"time_steps": SHORT.get(name, GPU.time_steps)}
    asked |= {"dtype": "bfloat16"} if variant.way == "amp" else {}
    for surrogate, profile in product(("fast_sigmoid", "rectangle", "one_sided"), variant.exact or PROFILES):
        reset, detach_reset = PROFILES[profile]
        given = {"reset": reset, "detach_reset": detach_reset, "surrogate": surrogate}
        case = GPU.resized(**asked | given | changes)
        request = Request(measure=measure, case=case, variant=name, phases=PHASES, repetitions=3)
        ending = run(python, adapter.path, request, environment(1, environments.home()), timeout_s=300)
        assert ending.reply is not None, ending.log
        if ending.reply.outcome.get("kind") == "unavailable":
            pytest.skip(ending.reply.outcome["reason"])
        if ending.reply.outcome.get("kind") != "unsupported":
            return ending.reply
    pytest.fail(f"refused everywhere: {ending.reply.outcome['reason']}")


@pytest.mark.parametrize(("library", "name"), CONTENDERS, ids="/".join)
def test_exam_and_spot_check_find_what_is_declared(library: str, name: str) -> None:
    variant = ADAPTERS[library].variants[name]
    reply = ask(library, name, "verify")
    expected = "deviates" if variant.deviation else "equivalent" if variant.way == "amp" else "exact"
    assert (reply.outcome["status"], reply.outcome.get("verdict")) == ("measured", expected), reply.outcome


@pytest.mark.parametrize(("library", "name"), KERNELS, ids="/".join)
def test_the_kernel_that_a_variant_is_named_after_ran(library: str, name: str) -> None:
    reply = ask(library, name, "time")
    assert reply.outcome["status"] == "measured", reply.outcome
    assert reply.settings["ran"]
    assert reply.settings["provider"] != "torch"


@pytest.mark.parametrize(("library", "name"), KERNELS, ids="/".join)
def test_device_memory_of_a_kernel_is_counted(library: str, name: str) -> None:
    reply = ask(library, name, "memory")
    spikes_bytes = 4 * GPU.time_steps * GPU.batch * GPU.neurons
    assert reply.memory["device"]["peak_bytes"] >= spikes_bytes
    assert reply.memory["device"]["retained_bytes"] >= 0


@pytest.mark.parametrize(("library", "name"), FRAMEWORKS)
def test_another_kernel_than_the_declared_one_is_incorrect(library: str, name: str, tmp_path: Path) -> None:
    adapter = ADAPTERS[library]
    lying = tmp_path / "lying.py"
    lying.write_text(adapter.path.read_text() + '\nPROVIDER = ("^no_such_kernel$",)\n')
    request = Request(measure="verify", case=GPU, variant=name)
    ending = run(python_of(library, name), lying, request, environment(1, environments.home()), timeout_s=300)
    assert ending.reply is not None and ending.reply.outcome["kind"] == "incorrect"
    assert "what ran: " in ending.reply.outcome["reason"]


@pytest.mark.parametrize(("library", "name"), FRAMEWORKS)
def test_tf32_is_told_from_ieee_by_its_verdict(library: str, name: str) -> None:
    reply = ask(library, name, "verify", precision="tf32")
    assert reply.outcome == {"status": "measured", "verdict": "equivalent"}
    assert reply.settings["matmul_precision"] in ("tf32", "tensorfloat32")


@pytest.mark.parametrize(("library", "name"), FRAMEWORKS)
def test_a_pass_is_not_faster_than_its_matrix_product_could_be(library: str, name: str) -> None:
    case = {"neurons": 4096, "batch": 16, "time_steps": 500}
    reply = ask(library, name, "time", **case)
    assert reply.outcome["status"] == "measured", reply.outcome
    operations = 2 * 500 * 16 * 4096**2
    fastest_ns = operations / 100e12 * 1e9  # no device computes 100 TFLOP/s in strict float32
    for phase in ("inference", "forward"):
        timing = reply.phases[phase]
        assert min(timing["repetitions_ns"]) / timing["passes"] > fastest_ns
        assert timing["floor_ns"] > fastest_ns, "and neither is the floor"
    assert all(1 <= timing["times_floor"] < 100 for timing in reply.phases.values())


@pytest.mark.parametrize(("library", "name"), FRAMEWORKS)
def test_device_memory_is_counted(library: str, name: str) -> None:
    reply = ask(library, name, "memory")
    spikes_bytes = 4 * 64 * 8 * 256
    device = reply.memory["device"]
    assert device["peak_bytes"] >= spikes_bytes
    assert device["retained_bytes"] >= spikes_bytes
    assert reply.memory["static_bytes"] >= 2 * spikes_bytes
    assert device["reserved_bytes"] is None or device["reserved_bytes"] >= device["peak_bytes"]


@pytest.mark.parametrize(("library", "name"), FRAMEWORKS[:1])
def test_a_case_too_large_for_the_device_is_out_of_its_memory(library: str, name: str) -> None:
    reply = ask(library, name, "verify", neurons=16384, batch=256, time_steps=2000)
    assert (reply.outcome["status"], reply.outcome["kind"]) == ("failed", "oom-device")
