"""Tests of lies at one site of a network: each is found, and the site is named."""

from pathlib import Path
from typing import Any

import pytest
import torch

from snnbench.backends.torch import operations as modules
from snnbench.cases.operations import Neurons
from snnbench.workloads import network
from tests.frameworks.workloads.test_network import LOOP, one_thread, reply_to
from tests.networks import RESNET, SMALL

__all__ = ["one_thread"]
WIDER = RESNET.with_(width=8)
"""A network of 17 sites that is larger than its exam."""
MIDDLE = 10


def lying(site: int, *changes: str) -> str:
    """The loop in plain torch, with texts replaced (old, new, ...) at a site of networks larger than the exam."""
    head, _, body = LOOP.partition("    def layer(current, own=None, carried=None):\n")
    honest, _, _ = body.partition("    return Neuron(")
    wrong = honest
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert wrong.count(old) == 1
        wrong = wrong.replace(old, new)
    return (
        f"{head}    sites = []\n\n    def layer(current, own=None):\n{honest}    def wrong(current):\n{wrong}"
        "    def of_site(neurons):\n        sites.append(neurons)\n"
        f"        return wrong if len(sites) == {site} and case.width > 5 else layer\n\n    return Neuron(of_site)\n"
    )


LIES = {
    "wrong decay": ("case.beta * v", "0.899 * v"),
    "threshold": ("u - case.threshold, case.slope", "u - 1.01 * case.threshold, case.slope"),
    "detached reset": ("s.detach() if case.detach_reset else s", "s.detach()"),
    "other reset": ("u - case.threshold * reset_spike if", "u * (1 - reset_spike) if"),
    "truncated": ("case.beta * v +", "case.beta * (v.detach() if t == 3 else v) +"),
    "slope": ("case.threshold, case.slope)", "case.threshold, 1.05 * case.slope)"),
    "half of the neurons": (
        "return torch.stack(spikes)",
        "return torch.stack(spikes) * (torch.arange(len(u[0])) < len(u[0]) // 2)",
    ),
    "silent neuron": ("return torch.stack(spikes)", "return torch.stack(spikes) * (torch.arange(len(u[0])) != 7)"),
    "last sample": (
        "return torch.stack(spikes)",
        "return torch.stack(spikes) * (torch.arange(len(u)) < len(u) - 1)[:, None]",
    ),
    "16 bits": ("else x)", "else x.bfloat16().float())"),
    "gradient of 16 bits": (
        "current.unbind(0) if",
        "(c := current.clone(), c.requires_grad and c.register_hook(lambda g: g.bfloat16().float()))[0].unbind(0) if",
    ),
    "state is carried": (
        "torch.zeros_like(current[0])",
        "Spike.__dict__.get('kept', torch.zeros_like(current[0]))",
        "return torch.stack(spikes)",
        "Spike.kept = v.detach()\n        return torch.stack(spikes)",
    ),
    "answers are kept": (
        "return torch.stack(spikes)",
        "y = torch.stack(spikes)\n        Spike.kept = Spike.__dict__.get('kept', y.detach())\n"
        "        return Spike.kept + y - y.detach()",
    ),
}


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("site", [1, 2])
def test_lie_at_a_site_is_named(tmp_path: Path, name: str, site: int) -> None:
    outcome = reply_to(tmp_path, lying(site, *LIES[name]), SMALL).outcome
    assert outcome and outcome.kind == "incorrect" and f"group {site} 1 neurons by themselves" in outcome.reason


HIDDEN = ("wrong decay", "threshold", "slope", "16 bits", "gradient of 16 bits")
IN_16_BITS = {name: lie for name, lie in LIES.items() if name not in HIDDEN} | {
    "larger threshold": ("u - case.threshold, case.slope", "u - 1.05 * case.threshold, case.slope"),
    "other decay": ("case.beta * v", "(case.beta - 0.04) * v"),
    "gradient of one neuron": (
        "return torch.stack(spikes)",
        "y = torch.stack(spikes)\n        part = (torch.arange(y.shape[2]) == 7).to(y.dtype)\n"
        "        return y + part * (y.detach() - y)",
    ),
}
"""Lies that 16 bits cannot hide. A change of a percent in a decay, a threshold or a slope is the float32 exam's."""


@pytest.mark.parametrize("name", IN_16_BITS)
def test_lie_in_16_bits_is_named(tmp_path: Path, name: str) -> None:
    case = SMALL.with_(dtype="bfloat16", beta=0.875)
    outcome = reply_to(tmp_path, lying(2, *IN_16_BITS[name]), case, phases=("train",)).outcome
    assert outcome and outcome.kind == "incorrect" and "group 2 1 neurons by themselves" in outcome.reason


@pytest.mark.parametrize("name", LIES)
def test_lie_in_the_middle_of_a_resnet_is_named(tmp_path: Path, name: str) -> None:
    sites = [operation.name for operation in network.parts(WIDER).operations if isinstance(operation, Neurons)]
    assert len(sites) == 17
    outcome = reply_to(tmp_path, lying(MIDDLE, *LIES[name]), WIDER).outcome
    assert outcome and outcome.kind == "incorrect" and f"{sites[MIDDLE - 1]} by themselves" in outcome.reason


OF_ZERO = {name: lie for name, lie in LIES.items() if name not in ("detached reset", "other reset")} | {
    "attached reset": ("s.detach() if case.detach_reset else s", "s"),
    "other reset": (
        'if case.reset == "subtract" else u * (1 - reset_spike)',
        "if True else u * (1 - reset_spike)",
    ),
}


@pytest.mark.parametrize("name", OF_ZERO)
def test_lie_with_a_reset_to_zero_is_named(tmp_path: Path, name: str) -> None:
    outcome = reply_to(tmp_path, lying(2, *OF_ZERO[name]), SMALL.with_(reset="zero", detach_reset=True)).outcome
    assert outcome and outcome.kind == "incorrect" and "group 2 1 neurons by themselves" in outcome.reason


@pytest.mark.parametrize("variant", ["unbind", "amp"])
def test_lie_in_the_timed_network_alone_is_found(tmp_path: Path, variant: str) -> None:
    """The network of the exam is built first, then the timed one, then the recorded one, each with two sites."""
    dtype = "bfloat16" if variant == "amp" else "float32"
    lie = lying(2, "case.beta * v", "0.5 * v").replace("len(sites) == 2 and case.width > 5", "len(sites) == 4")
    lie = lie.replace("sites = []", "sites = Spike.sites = getattr(Spike, 'sites', [])")
    outcome = reply_to(tmp_path, lie, SMALL.with_(dtype=dtype), variant=variant).outcome
    assert outcome and outcome.kind == "incorrect" and "than when the pass is recorded" in outcome.reason


def test_two_layers_in_each_others_place_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every site is right on the current that it got; only the link from weights to currents is wrong."""
    first, second = "stage 1 block 1 1 convolution", "stage 1 block 2 1 convolution"
    drawn, made = network.Problem(WIDER).parameters(), modules._module
    others = {first: drawn[second], second: drawn[first]}

    def make(operation: Any, parameters: Any, scale: float) -> Any:
        if operation.name in others and operation.shape[0] == WIDER.width:
            parameters = [torch.from_numpy(array) for array in others[operation.name]]
        return made(operation, parameters, scale)

    monkeypatch.setattr(modules, "_module", make)
    outcome = reply_to(tmp_path, LOOP, WIDER).outcome
    assert outcome and outcome.kind == "incorrect" and f"value of {first} is off" in outcome.reason


def test_neuron_that_is_honest_while_recorded_is_found(tmp_path: Path) -> None:
    is_recorded = (
        "(current.grad_fn is not None and 'Add' in current.grad_fn.next_functions[0][0].next_functions[0][0].name())"
    )
    lie = ("case.beta * v +", f"(case.beta if {is_recorded} else 0.5) * v +")
    outcome = reply_to(tmp_path, lying(2, *lie), SMALL).outcome
    assert outcome and outcome.kind == "incorrect" and "than when the pass is recorded" in outcome.reason
