"""Tests of several layers in 16 bits: honest networks pass layer by layer, and a fault in one layer is found."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from snnbench.adapter.loading import (
    load,
    own_rule,
)
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import Incorrect
from snnbench.analysis.results import coverage
from snnbench.backends.torch import Backend
from snnbench.cases.case import Case
from snnbench.cases.outcome import Outcome
from snnbench.checking import records
from snnbench.recording.reading import read as read_recording
from snnbench.worker.measurement import Measurement
from snnbench.worker.messages import Measure, Reply
from snnbench.workloads.linear_lif import builder
from tests.fakes import CASE, PHASES, profile, request
from tests.shipped import QUICK, RESULTS

ROOT = Path(__file__).parents[3]
FORWARD = """
        for linear in linears:
            x = neurons(linear(x))
        return x
"""
STACK = f"""

def build(case, weights, variant):
    linears = [layer.linear() for layer in weights]
    neurons = neuron(case, variant).layer(case.neurons)

    def forward(x):{FORWARD}
    return Network(forward, linears)
"""
LOOP = (ROOT / "adapters" / "torch-loop.py").read_text(encoding="utf-8") + STACK
LOOP = LOOP.replace("import Neuron", "import Network, Neuron")
DEEP = CASE.with_(layers=2, dtype="bfloat16", time_steps=30, batch=7, neurons=48)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are slower on two threads, which wait for each other; a worker takes the case's own count."""
    threads = torch.get_num_threads()
    torch.set_num_threads(DEEP.threads)
    yield
    torch.set_num_threads(threads)


def written(body: str) -> str:
    """The loop in plain torch, with a loop over layers. The body computes `s` from `x` and `linear`.

    Beyond the size of an exam, `large` is true in every layer, and `hidden` in the first of several layers.
    """
    lines = "".join(f"            {line}\n" for line in body.strip().splitlines())
    assert FORWARD in LOOP
    return LOOP.replace(
        FORWARD,
        "\n        for number, linear in enumerate(linears):\n"
        "            large = len(x) > 8\n"
        "            hidden = large and number == 0 and len(linears) > 1\n"
        f"{lines}            x = s\n        return x\n",
    )


def altered(old: str, new: str) -> str:
    """The loop in plain torch with one replacement."""
    assert LOOP.count(old) == 1
    return LOOP.replace(old, new)


def reply_to(folder: Path, source: str, measure: Measure, case: Case, **changes: Any) -> Reply:
    """The reply to a request to measure the adapter with this text, in this process."""
    path = folder / "loop.py"
    path.write_text(source)
    module, worker_request = load(path), replace(request(measure, case, **changes), variant="unbind")
    reply = Reply({})
    try:
        variant = read(path).variants["unbind"]
        Measurement(worker_request, Backend(case), builder(module), own_rule(module), variant).run(reply)
    except Incorrect as error:
        reply.outcome = Outcome(status="failed", kind="incorrect", reason=str(error))
    return reply


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("layers", "name"), [(2, "subtract"), (2, "zero"), (3, "zero"), (5, "subtract")])
def test_honest_network_is_equivalent(tmp_path: Path, dtype: Any, layers: int, name: str) -> None:
    case = DEEP.with_(dtype=dtype, layers=layers, time_steps=60, **profile(name))
    reply = reply_to(tmp_path, LOOP, "verify", case)
    assert reply.outcome == Outcome(status="measured", verdict="equivalent")
    check = reply.checks["spot-train"]
    assert check["compared"] == case.updates and check["unexplained"] == 0
    assert set(check["gradient_errors"]) == {
        *(f"{kind} of layer {number}" for kind in ("weight", "bias") for number in range(layers)),
        *("input" if number == 0 else f"input of layer {number}" for number in range(layers)),
    }
    assert max(check["gradient_errors"].values()) > 1e-5, "16 bits show"


@pytest.mark.parametrize("check_ns", [0, 10**12])
@pytest.mark.parametrize("measure", ["time", "memory"])
def test_record_of_an_honest_network_keeps_the_rules(tmp_path: Path, measure: Measure, check_ns: int) -> None:
    reply = reply_to(tmp_path, LOOP, measure, DEEP, check_ns=check_ns)
    assert reply.outcome == Outcome(status="measured", verdict="equivalent")
    assert set(reply.phases) == (set(PHASES) if measure == "time" else set())
    assert bool(reply.memory) == (measure == "memory")
    sound = read_recording(RESULTS / QUICK).records[0]
    fields = {name: getattr(reply, name) for name in ("outcome", "checks", "phases", "memory", "peaks")}
    record = replace(sound, case=DEEP, measure=measure, **fields)
    assert list(records.proof(record, 4)) == []
    assert (
        coverage(DEEP, reply.checks.values()) == "all" if check_ns else reply.checks["spot-train"]["seed"] is not None
    )
    few = replace(record, checks={name: check | {"compared": 1} for name, check in reply.checks.items()})
    assert any("compared 1, where there are" in complaint for complaint in records.proof(few, 4))


ONE_PLACE = "(torch.arange(s.shape[0])[:, None, None] == 9) & (torch.arange(s.shape[1])[:, None] == 2) & "
SPIKES = r"\d+ of 10080 spikes differ"
LIES = {
    "a neuron of a hidden layer is silent": (
        written("s = neurons(linear(x))\ns = s * (torch.arange(s.shape[2]) != 5) if hidden else s"),
        f"{SPIKES} from what its layers give one after the other, the first at t=",
    ),
    "a hidden spike at one place is wrong": (
        written(
            "s = neurons(linear(x))\n"
            f"place = {ONE_PLACE}(torch.arange(s.shape[2]) == 4)\n"
            "s = torch.where(place, 1 - s, s) if hidden else s"
        ),
        f"{SPIKES} from what its layers give one after the other",
    ),
    "a hidden layer leaves out a step": (
        written("s = neurons(linear(x))\ns = s * (torch.arange(len(s)) != 7)[:, None, None] if hidden else s"),
        f"{SPIKES} from what its layers give one after the other",
    ),
    "a hidden layer rounds its current to 7 binary digits less": (
        written("c = linear(x)\ns = neurons(torch.round(c * 4) / 4 + (c - c.detach()) if hidden else c)"),
        f"{SPIKES} from what its layers give one after the other",
    ),
    "every layer rounds its current to eighths": (
        written("c = linear(x)\ns = neurons(torch.round(c * 8) / 8 + (c - c.detach()) if large else c)"),
        f"layer 0 by itself: {SPIKES}, the first at t=.*; layer 1 by itself: {SPIKES}",
    ),
    "a hidden layer resets to zero": (
        written("neurons.hidden = hidden\ns = neurons(linear(x))").replace(
            'if case.reset == "subtract"', 'if case.reset == "subtract" and not layer.hidden'
        ),
        f"{SPIKES} from what its layers give one after the other",
    ),
    "layers are swapped": (
        written("s = neurons(linears[1 - number](x) if large and len(linears) > 1 else linear(x))"),
        f"{SPIKES} from what its layers give one after the other",
    ),
    "every layer resets to zero": (
        altered('if case.reset == "subtract"', 'if case.reset == "subtract" and len(current) <= 8'),
        f"layer 0 by itself: {SPIKES}",
    ),
    "every layer decays faster": (
        altered("u = case.beta * v", "u = (case.beta if len(current) <= 8 else 0.88) * v"),
        f"layer 0 by itself: {SPIKES}",
    ),
    "every layer detaches its reset": (
        altered("if case.detach_reset else s", "if case.detach_reset or len(current) > 8 else s"),
        r"layer 0 by itself: gradient of weight is off by \d.*; 0.06 allowed\)",
    ),
    "a row of the first weight has no gradient": (
        written(
            "row = (torch.arange(len(linear.weight)) == 3)[:, None] & hidden\n"
            "weight = torch.where(row, linear.weight.detach(), linear.weight)\n"
            "s = neurons(torch.nn.functional.linear(x, weight, linear.bias))"
        ),
        r"gradient of weight of layer 0 is off by .* allowed\)",
    ),
    "a hidden layer passes no gradient on": (
        written(
            "c = linear(x.detach() if large and number == 1 else x)\n"
            "s = neurons(c + 0 * (x.sum() + linears[0].weight.sum() + linears[0].bias.sum()))"
        ),
        "gradient of weight of layer 0 is zero",
    ),
}
"""Each is right in the exam, which it recognises by its few steps."""


@pytest.mark.parametrize("name", LIES)
def test_fault_of_a_layer_is_incorrect(tmp_path: Path, name: str) -> None:
    source, complaint = LIES[name]
    reply = reply_to(tmp_path, source, "verify", DEEP)
    assert reply.outcome.kind == "incorrect", reply.outcome
    assert re.search(complaint, reply.outcome.reason), reply.outcome.reason


@pytest.mark.parametrize(
    ("decay", "status"),
    [
        ("case.beta", "measured"),
        ("torch.tensor(case.beta, dtype=v.dtype)", "measured"),
        ("(case.beta if v.dtype == torch.float32 else 0.98)", "failed"),
    ],
)
def test_decay_may_be_rounded_to_16_bits_only(tmp_path: Path, decay: str, status: str) -> None:
    """0.99 is 0.98828125 in bfloat16: over 100 steps that moves a potential by a sixth."""
    case = DEEP.with_(beta=0.99, time_steps=60, **profile("zero"))
    reply = reply_to(tmp_path, altered("u = case.beta * v", f"u = {decay} * v"), "verify", case)
    assert reply.outcome.status == status, reply.outcome


@pytest.mark.parametrize("measure", ["verify", "time", "memory"])
def test_single_wrong_layer_of_eight_is_named(tmp_path: Path, measure: Measure) -> None:
    """The seventh layer decays by another factor, in a stack of eight only; numbers count from 0."""
    case = DEEP.with_(layers=8, dtype="float32")
    source = written("neurons.wrong = number == 6 and large\ns = neurons(linear(x))").replace(
        "u = case.beta * v", "u = case.beta * (0.99 if layer.wrong else 1.0) * v"
    )
    reply = reply_to(tmp_path, source, measure, case)
    assert reply.outcome is not None and reply.outcome.kind == "incorrect" and not reply.phases
    assert "layer 6 differs in a stack from the same layer by itself" in str(reply.outcome.reason)


@pytest.mark.parametrize("measure", ["verify", "time", "memory"])
def test_deep_stack_in_float32_is_exact(tmp_path: Path, measure: Measure) -> None:
    case = DEEP.with_(layers=8, dtype="float32")
    reply = reply_to(tmp_path, LOOP, measure, case)
    assert reply.outcome == Outcome(status="measured", verdict="exact")
    trained = reply.checks["spot-train"]
    assert trained["differing"] == 0 and "weight of layer 7" in trained["gradient_errors"]
