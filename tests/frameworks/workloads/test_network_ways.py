"""Tests of networks in 16 bits, under autocast, compiled, and step by step: honest ones pass, and lies are found."""

import gc
from pathlib import Path
from typing import Any

import pytest

from snnbench.adapter.loading import load
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import Unsupported
from snnbench.backends.torch import Backend
from snnbench.cases.outcome import Outcome
from snnbench.worker.measurement import Measurement
from snnbench.workloads import loading, network
from tests.fakes import profile
from tests.frameworks.workloads.test_network import LOOP, one_thread, reply_to
from tests.networks import RESNET, SMALL
from tests.small_epochs import SMALL as FED

__all__ = ["one_thread"]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("case", [SMALL, RESNET.with_(width=8, beta=0.875)], ids=["convolutional", "resnet"])
def test_network_in_16_bits_is_equivalent(tmp_path: Path, case: network.Case, dtype: Any) -> None:
    """Its exam is in float32. In 16 bits sites, links and bits are compared."""
    reply = reply_to(tmp_path, LOOP, case.with_(dtype=dtype), phases=("train",))
    assert reply.outcome and reply.outcome.verdict == "equivalent", reply.outcome
    assert reply.checks["spot-train"]["unexplained"] == 0
    assert max(reply.checks["spot-train"]["gradient_errors"].values()) > 1e-4, "it ran in 16 bits"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("normalisation", ["batch", "frozen"])
def test_network_under_autocast_is_equivalent(tmp_path: Path, normalisation: Any, dtype: Any) -> None:
    """Weights are float32, and products run in 16 bits, in the timed network and in the recorded one."""
    case = SMALL.with_(dtype=dtype, normalisation=normalisation, beta=0.875)
    reply = reply_to(tmp_path, LOOP, case, variant="amp")
    assert reply.outcome and reply.outcome.verdict == "equivalent", reply.outcome
    assert max(reply.checks["spot-train"]["gradient_errors"].values()) > 1e-4, "it ran in 16 bits"


def test_neuron_that_leaves_autocast_is_equivalent(tmp_path: Path) -> None:
    """A library that emits float32 spikes runs under autocast, which rounds them for the next product."""
    source = LOOP.replace(
        "def layer(current, own=None, carried=None):\n",
        "def layer(current, own=None, carried=None):\n        current = current.float()\n",
    )
    reply = reply_to(tmp_path, source, RESNET.with_(dtype="bfloat16", width=8, beta=0.875), variant="amp")
    assert reply.outcome and reply.outcome.verdict == "equivalent", reply.outcome


HEAD, _, _ = LOOP.replace("import Neuron", "import SteppedNeuron").partition(
    "    def layer(current, own=None, carried=None):\n"
)
STEPPED = (
    HEAD
    + """    def step(x, v):
        u = x if v is None else case.beta * v + x
        s = Spike.apply(u - case.threshold, case.slope)
        reset_spike = s.detach() if case.detach_reset else s
        return s, u - case.threshold * reset_spike if case.reset == "subtract" else u * (1 - reset_spike)

    return SteppedNeuron(lambda neurons: step)
"""
)
"""The same neuron, in a network that runs step by step."""


@pytest.mark.parametrize("case", [SMALL, RESNET.with_(**profile("zero"))], ids=["convolutional", "resnet"])
def test_network_that_runs_step_by_step_is_exact(tmp_path: Path, case: network.Case) -> None:
    frozen = case.with_(normalisation="frozen")
    reply = reply_to(tmp_path, STEPPED, frozen)
    assert reply.outcome == Outcome(status="measured", verdict="exact"), reply.outcome
    assert reply.checks["spot-train"]["compared"] == case.updates


def test_network_of_another_order_runs_step_by_step(tmp_path: Path) -> None:
    source = STEPPED.replace('BACKEND = "torch"', 'BACKEND = "torch"\nORDER = "BTN"')
    reply = reply_to(tmp_path, source, SMALL.with_(normalisation="frozen"))
    assert reply.outcome == Outcome(status="measured", verdict="exact"), reply.outcome


def test_step_by_step_has_no_statistics_of_a_batch(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="use frozen statistics"):
        reply_to(tmp_path, STEPPED, SMALL.with_(normalisation="batch"))


def test_compiled_network_has_no_statistics_of_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before the exam, for which torch would compile for half a minute."""
    monkeypatch.setattr(Measurement, "_exam", lambda *_: pytest.fail("the exam began"))
    with pytest.raises(Unsupported, match=r"torch.compile sums statistics of a batch .*: use frozen statistics"):
        reply_to(tmp_path, LOOP, SMALL.with_(normalisation="batch"), variant="compile")


@pytest.mark.parametrize("way", ["compile", "amp", "cuda-graph"])
def test_epochs_run_in_no_other_way(tmp_path: Path, way: str) -> None:
    """The loop of an epoch calls the network itself, so a graph would not be replayed."""
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    dtype: Any = "bfloat16" if way == "amp" else "float32"
    problem = loading.Problem(FED.with_(dtype=dtype))
    with pytest.raises(Unsupported, match=f"epochs do not run with the way {way}"):
        Backend(problem.case).session(loading.builder(load(path)), read(path).variants[way], problem)


def test_state_that_a_step_drops_is_named(tmp_path: Path) -> None:
    lie = STEPPED.replace("case.beta * v + x", "(case.beta * v if case.width < 6 else 0.5 * v) + x")
    outcome = reply_to(tmp_path, lie, SMALL.with_(normalisation="frozen")).outcome
    assert outcome and outcome.kind == "incorrect" and "group 1 1 neurons by themselves" in outcome.reason


def test_state_of_a_step_does_not_outlive_its_pass(tmp_path: Path) -> None:
    """A state that is left over would hold the graph of the whole pass until the next one."""
    body, _, last = STEPPED.rpartition("        return s, u -")
    rest, _, end = last.partition("\n")
    noting = f"        v = u -{rest}\n        states.append(weakref.ref(v))\n        return s, v\n{end}"
    path = tmp_path / "loop.py"
    path.write_text((body + noting).replace("import torch\n", "import weakref\n\nimport torch\n\nstates = []\n", 1))
    module, problem = load(path), network.Problem(SMALL.with_(normalisation="frozen"))
    session = Backend(problem.case).session(network.builder(module), read(path).variants["unbind"], problem)
    output = session.forward()
    gc.collect()
    assert len(module.states) == 2 * SMALL.time_steps and all(state() is None for state in module.states)
    assert output.requires_grad
