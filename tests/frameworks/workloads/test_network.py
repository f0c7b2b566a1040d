"""Tests of networks in PyTorch: honest networks are exact, and lies are found."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from snnbench.adapter.loading import load, own_rule
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import operations
from snnbench.backends.torch import Backend
from snnbench.backends.torch import operations as modules
from snnbench.cases.operations import Neurons
from snnbench.cases.outcome import Outcome
from snnbench.cases.windows import Convolution
from snnbench.proof.tolerance import RATE_WINDOW
from snnbench.recording import schema
from snnbench.worker import floor
from snnbench.worker.measurement import Measurement
from snnbench.worker.messages import Measure, Reply
from snnbench.workloads import network
from tests.fakes import PHASES, profile, request
from tests.networks import RESNET, SEW, SMALL

ROOT = Path(__file__).parents[3]
LOOP = (ROOT / "adapters" / "torch-loop.py").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are slower on two threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def reply_to(
    folder: Path,
    source: str,
    case: network.Case,
    measure: Measure = "verify",
    variant: str = "unbind",
    **changes: Any,
) -> Reply:
    """The reply to a request to measure the adapter with this text, in this process."""
    path = folder / "loop.py"
    path.write_text(source)
    wanted = {"phases": PHASES} | changes
    module, asked_for = load(path), replace(request(measure, case, **wanted), variant=variant)
    reply = Reply({})
    declared = read(path).variants[variant]
    Measurement(asked_for, Backend(case), network.builder(module), own_rule(module), declared).run(reply)
    return reply


@pytest.mark.parametrize(
    "case",
    [
        SMALL,
        SMALL.with_(normalisation="frozen", **profile("zero")),
        SMALL.with_(dtype="float64", model="vgg"),
        RESNET,
        SEW,
    ],
)
def test_honest_network_is_exact(tmp_path: Path, case: network.Case) -> None:
    reply = reply_to(tmp_path, LOOP, case)
    assert reply.outcome == Outcome(status="measured", verdict="exact")
    assert schema.complaint("reply", reply.as_dict()) is None
    check = reply.checks["spot-train"]
    assert check["compared"] == case.updates and check["unexplained"] == 0
    parameters = sum(len(operation.parameters) for operation in network.parts(case).operations)
    sites = sum(isinstance(operation, Neurons) for operation in network.parts(case).operations)
    assert len(check["gradient_errors"]) == parameters + sites


def gained() -> str:
    """The loop in plain torch, of a library whose neuron divides its current by 3."""
    source = LOOP.replace(
        "def layer(current, own=None, carried=None):\n",
        "def layer(current, own=None, carried=None):\n        current = current / 3\n",
    )
    return source.replace("Neuron(lambda neurons: layer,", "Neuron(lambda neurons: layer, gain=3.0,")


def ordered(order: str) -> str:
    """The loop in plain torch, of a library with its axes in another order."""
    there = tuple(order.index(axis) for axis in "TBN")
    back = tuple("TBN".index(axis) for axis in order)
    source = LOOP.replace('BACKEND = "torch"', f'BACKEND = "torch"\nORDER = "{order}"')
    return source.replace(
        "Neuron(lambda neurons: layer,",
        f"Neuron(lambda neurons: lambda current: layer(current.permute({there})).permute({back}),",
    )


@pytest.mark.parametrize(
    ("source", "case"),
    [(gained(), RESNET), (gained(), SEW), *((ordered(order), RESNET) for order in ("BTN", "BNT", "NTB"))],
)
def test_unit_and_order_of_a_library_are_kept(tmp_path: Path, source: str, case: network.Case) -> None:
    assert source != LOOP
    reply = reply_to(tmp_path, source, case)
    assert reply.outcome == Outcome(status="measured", verdict="exact")


def test_timed_network_has_a_floor_and_keeps_the_rules(tmp_path: Path) -> None:
    settings = {"phases": ("inference", "train"), "repetitions": 3, "min_repetition_ns": 1, "max_phase_ns": 10**9}
    reply = reply_to(tmp_path, LOOP, SMALL, "time", **settings)
    assert reply.outcome == Outcome(status="measured", verdict="exact")
    assert {*network.products(SMALL, "train"), "copy", "call"} == set(reply.peaks)
    for name, phase in reply.phases.items():
        assert phase["flops"] == floor.flops(SMALL, name) and phase["times_floor"] > 0.5
    assert {name for name in reply.checks if name.startswith("fresh-")} == {"fresh-inference", "fresh-train"}
    low, high = RATE_WINDOW
    assert all(low <= check["rate"] <= high for check in reply.checks.values())


def test_convolution_with_other_weights_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = modules._module

    def make(operation: Any, parameters: Any, gain: float) -> Any:
        if isinstance(operation, Convolution) and operation.shape[0] == SMALL.width:
            parameters = [parameter.flip(0) for parameter in parameters]
        return made(operation, parameters, gain)

    monkeypatch.setattr(modules, "_module", make)
    outcome = reply_to(tmp_path, LOOP, SMALL).outcome
    assert outcome and outcome.kind == "incorrect" and "value of group 1 1 convolution is off" in outcome.reason


def test_exam_finds_two_sites_in_each_others_place(tmp_path: Path) -> None:
    lie = LOOP.replace("case.beta * v", "(case.beta if current.shape[2] > 100 else 0.25) * v")
    outcome = reply_to(tmp_path, lie, RESNET).outcome
    assert outcome and outcome.kind == "incorrect" and outcome.reason.startswith("exam")


def test_network_without_a_proof_is_refused(tmp_path: Path) -> None:
    variant = read(ROOT / "adapters" / "jax-scan.py").variants["default"]
    with pytest.raises(Unsupported, match="float32, float64 here, so far"):
        operations.check(network.Problem(SMALL.with_(dtype="bfloat16")), variant, ("float32", "float64"))
    late = replace(variant, latency=1)
    with pytest.raises(Unsupported, match="these neurons answer 1 step late"):
        operations.check(network.Problem(SMALL), late, ("float32",))
    with pytest.raises(Unsupported, match="in PyTorch and in JAX only"):
        network.builder(load(ROOT / "adapters" / "reference.py"))(SMALL.with_(dtype="float64"), None, "default")
    build = network.builder(ModuleType("without_neurons"))  # a reason of the variant's own comes before this one
    with pytest.raises(Unsupported, match=r"no function neuron\(case, variant\) for the sites of a network"):
        build(SMALL, None, "default")
    with pytest.raises(Unsupported, match="another rule"):
        network.exams(SMALL, drive=1.0)
