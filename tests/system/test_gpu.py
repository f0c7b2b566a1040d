"""Tests that need a CUDA device, and a Python with the libraries: `pytest -m gpu -n 8 tests/system/test_gpu.py`.

Each test is one worker or a few, independent of the others, so tests can run side by side. A test that times passes
waits until it has the device to itself. Needs neither a network nor the package uv.
"""

import fcntl
from collections.abc import Iterator
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from snnbench.adapter.discovery import discover
from snnbench.cases.case import PROFILES, Case
from snnbench.cases.outcome import Outcome
from snnbench.environments import store
from snnbench.files import home
from snnbench.machine import gpus
from snnbench.run.process import Ending, environment, run
from snnbench.worker.messages import Measure, Reply, Request
from tests.fakes import CASE

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpus.has_cuda(), reason="no CUDA device here"),
]

GPU = CASE.with_(device="cuda", neurons=256, batch=8, time_steps=64, beta=0.9, input_rate=0.1, seed=1)
SHORT = {"compile": 6}
"""Time steps for variants that unroll the loop over time."""
PHASES = ("inference", "forward", "backward", "train")
ADAPTERS = discover()
DIVIDED = {"fused-devices"}
"""Adapters of work that is divided among devices: test_ranks.py."""
CONTENDERS = [
    (library, name)
    for library, adapter in ADAPTERS.items()
    for name, variant in adapter.variants.items()
    if "cuda" in variant.devices and library not in DIVIDED
]
FRAMEWORKS = [("torch-loop", "unbind"), ("jax-scan", "default")]
KERNELS = [(library, name) for library, name in CONTENDERS if ADAPTERS[library].variants[name].provider]


@pytest.fixture
def share() -> Iterator[None]:
    """Share the device with other tests."""
    yield from held(fcntl.LOCK_SH)


@pytest.fixture
def alone() -> Iterator[None]:
    """Hold the device without other tests, to time passes."""
    yield from held(fcntl.LOCK_EX)


def held(lock: int) -> Iterator[None]:
    """Hold a lock on the device until the test ends."""
    home().mkdir(parents=True, exist_ok=True)
    with (home() / "gpu-tests.lock").open("w") as file:
        fcntl.flock(file, lock)
        yield


def same_release(installed: str, pinned: str) -> bool:
    """Whether the installed release has the pinned release's major version (before 1.0: minor version)."""
    digits = 2 if Version(pinned).major == 0 else 1
    return (*Version(installed).release, 0)[:digits] == (*Version(pinned).release, 0)[:digits]


def python_of(library: str, name: str) -> Path:
    """The managed environment's Python if it exists (`snnbench env sync`), or this Python if it has the library."""
    planned = store.plan(ADAPTERS[library], name, cuda=True)
    if store.is_ready(planned):
        return planned.python
    variant = ADAPTERS[library].variants[name]
    distribution, pinned = variant.pins.distribution, variant.pins.version
    try:
        installed = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        pytest.skip(f"neither `snnbench env sync {planned.adapter}` nor {distribution} in this Python")
    if distribution != variant.backend and not same_release(installed, pinned):  # a framework may be the image's own
        pytest.skip(f"this Python has {distribution} {installed}, and {library}/{name} is written for {pinned}")
    return store.current()


def start(library: str, name: str, path: Path, measure: Measure, case: Case) -> Ending:
    """The ending of a worker with the adapter file at `path`, in the contender's Python."""
    python = python_of(library, name)
    request = Request(measure=measure, case=case, variant=name, phases=PHASES, repetitions=3)
    worker = environment(1, home(), current=python == store.current())
    return run(python, path, request, worker, timeout_s=300)


def ask(library: str, name: str, measure: Measure, **changes: Any) -> Reply:
    """A worker's reply, in the first profile and surrogate that the contender accepts."""
    adapter = ADAPTERS[library]
    variant = adapter.variants[name]
    fields: dict[str, Any] = {"time_steps": SHORT.get(name, GPU.time_steps)}
    fields |= {"dtype": "bfloat16"} if variant.way == "amp" else {}
    for surrogate, profile in product(("fast_sigmoid", "rectangle", "one_sided"), variant.exact or PROFILES):
        reset, detach_reset = PROFILES[profile]
        given = {"reset": reset, "detach_reset": detach_reset, "surrogate": surrogate}
        ending = start(library, name, adapter.path, measure, GPU.with_(**fields | given | changes))
        assert ending.reply is not None, ending.log
        if ending.reply.outcome.kind == "unavailable":
            pytest.skip(ending.reply.outcome.reason)
        if ending.reply.outcome.kind != "unsupported":
            return ending.reply
    pytest.fail(f"refused everywhere: {ending.reply.outcome.reason}")


EACH_CONTENDER = pytest.mark.parametrize(("library", "name"), CONTENDERS, ids=["/".join(one) for one in CONTENDERS])
EACH_KERNEL = pytest.mark.parametrize(("library", "name"), KERNELS, ids=["/".join(one) for one in KERNELS])
EACH_FRAMEWORK = pytest.mark.parametrize(("library", "name"), FRAMEWORKS, ids=["/".join(one) for one in FRAMEWORKS])


@EACH_CONTENDER
@pytest.mark.usefixtures("share")
def test_exam_and_spot_check_give_the_declared_verdict(library: str, name: str) -> None:
    variant = ADAPTERS[library].variants[name]
    reply = ask(library, name, "verify")
    expected = "deviates" if variant.deviation else "equivalent" if variant.way == "amp" else "exact"
    assert (reply.outcome.status, reply.outcome.verdict) == ("measured", expected), reply.outcome


@EACH_KERNEL
@pytest.mark.usefixtures("alone")
def test_timed_passes_run_the_declared_kernel(library: str, name: str) -> None:
    reply = ask(library, name, "time")
    assert reply.outcome.status == "measured", reply.outcome
    assert reply.settings["ran"]
    assert reply.settings["provider"] != "torch"


@EACH_KERNEL
@pytest.mark.usefixtures("share")
def test_device_memory_of_a_kernel_is_counted(library: str, name: str) -> None:
    reply = ask(library, name, "memory")
    assert reply.outcome.status == "measured", reply.outcome
    spikes_bytes = 4 * GPU.time_steps * GPU.batch * GPU.neurons
    assert reply.memory["device"]["peak_bytes"] >= spikes_bytes
    assert reply.memory["device"]["retained_bytes"] >= 0


@EACH_FRAMEWORK
@pytest.mark.usefixtures("share")
def test_another_kernel_than_the_declared_one_is_incorrect(library: str, name: str, tmp_path: Path) -> None:
    lying = tmp_path / "lying.py"
    lying.write_text(ADAPTERS[library].path.read_text() + '\nPROVIDER = ("^no_such_kernel$",)\n')
    ending = start(library, name, lying, "verify", GPU)
    assert ending.reply is not None, ending.log
    if ending.reply.outcome.kind == "unavailable":
        pytest.skip(ending.reply.outcome.reason)
    assert ending.reply.outcome.kind == "incorrect", ending.reply.outcome
    assert "what ran: " in ending.reply.outcome.reason


@EACH_FRAMEWORK
@pytest.mark.usefixtures("share")
def test_tf32_is_equivalent_and_not_exact(library: str, name: str) -> None:
    reply = ask(library, name, "verify", precision="tf32")
    assert reply.outcome == Outcome(status="measured", verdict="equivalent")
    assert reply.settings["matmul_precision"] in ("tf32", "tensorfloat32")


@EACH_FRAMEWORK
@pytest.mark.usefixtures("alone")
def test_pass_is_slower_than_the_fastest_matrix_product(library: str, name: str) -> None:
    case = {"neurons": 4096, "batch": 16, "time_steps": 500}
    reply = ask(library, name, "time", **case)
    assert reply.outcome.status == "measured", reply.outcome
    operations = 2 * 500 * 16 * 4096**2
    fastest_ns = operations / 100e12 * 1e9  # no device computes 100 TFLOP/s in strict float32
    for phase in ("inference", "forward"):
        timing = reply.phases[phase]
        assert min(timing["repetitions_ns"]) / timing["passes"] > fastest_ns
        assert timing["floor_ns"] > fastest_ns, "and neither is the floor"
    assert all(1 <= timing["times_floor"] < 100 for timing in reply.phases.values())


@EACH_FRAMEWORK
@pytest.mark.usefixtures("share")
def test_device_memory_of_a_framework_is_counted(library: str, name: str) -> None:
    reply = ask(library, name, "memory")
    assert reply.outcome.status == "measured", reply.outcome
    spikes_bytes = 4 * GPU.time_steps * GPU.batch * GPU.neurons
    device = reply.memory["device"]
    assert device["peak_bytes"] >= spikes_bytes
    assert device["retained_bytes"] >= spikes_bytes
    assert reply.memory["static_bytes"] >= 2 * spikes_bytes
    assert device["reserved_bytes"] is None or device["reserved_bytes"] >= device["peak_bytes"]


GREEDY = """


def build(case, weights, variant):
    from dataclasses import replace

    network = neuron(case, variant).stack(weights)

    def forward(x):
        torch.empty(1 << 42, dtype=torch.uint8, device="cuda")  # four terabytes
        return network.forward(x)

    return replace(network, forward=forward)
"""


@pytest.mark.usefixtures("share")
def test_too_large_allocation_is_out_of_device_memory(tmp_path: Path) -> None:
    library, name = FRAMEWORKS[0]
    greedy = tmp_path / "greedy.py"
    greedy.write_text(ADAPTERS[library].path.read_text() + GREEDY)
    ending = start(library, name, greedy, "verify", GPU)
    assert ending.reply is not None, ending.log
    outcome = ending.reply.outcome
    assert (outcome.status, outcome.kind) == ("failed", "oom-device"), outcome
