"""Tests of NIR graphs in PyTorch: the loop in plain torch is exact in every graph, and a lie is found at its node."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from snnbench.adapter.loading import load, own_rule
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import Unsupported
from snnbench.backends.torch import Backend
from snnbench.backends.torch import operations as modules
from snnbench.cases.outcome import Outcome
from snnbench.plan import graph_files
from snnbench.worker import floor
from snnbench.worker.measurement import Measurement
from snnbench.worker.messages import Reply
from snnbench.workloads import nir
from tests.fakes import PHASES, profile, request
from tests.frameworks.workloads.test_network import LOOP, one_thread
from tests.nir_cases import NIR

__all__ = ["one_thread"]
SHIPPED = ("images", "recurrent", "nested", "own-constants", "cubalif", "sequences")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path))


def case_of(name: str, **changes: Any) -> nir.Case:
    return NIR.with_(graph=graph_files.text(name), time_steps=40, **changes)


def reply_to(folder: Path, source: str, case: nir.Case, measure: Any = "verify", variant: str = "unbind") -> Reply:
    path = folder / "loop.py"
    path.write_text(source)
    module, reply = load(path), Reply({})
    asked_for = replace(request(measure, case, phases=PHASES), variant=variant)
    declared = read(path).variants[variant]
    Measurement(asked_for, Backend(case), nir.builder(module), own_rule(module), declared).run(reply)
    return reply


def outcome_of(folder: Path, source: str, case: nir.Case) -> Outcome:
    outcome = reply_to(folder, source, case).outcome
    assert outcome is not None
    return outcome


@pytest.mark.parametrize("reset", ["zero", "zero-attached", "subtract"])
@pytest.mark.parametrize("name", SHIPPED)
def test_plain_loop_is_exact(tmp_path: Path, name: str, reset: str) -> None:
    outcome = outcome_of(tmp_path, LOOP, case_of(name, **profile(reset)))
    assert outcome.verdict == "exact", outcome


def test_gain_of_each_site_is_its_own(tmp_path: Path) -> None:
    """A library whose neurons take (1 - beta) of their current, as Norse's do."""
    scaled = LOOP.replace(
        "return Neuron(lambda neurons: layer,", "return Neuron(lambda neurons: layer, 1 / (1 - case.beta),"
    )
    scaled = scaled.replace("(i if case.alpha else x)", "(1 - case.beta) * (i if case.alpha else x)")
    for name in ("images", "recurrent", "cubalif"):
        assert outcome_of(tmp_path, scaled, case_of(name)).verdict == "exact"


def test_floor_is_below_the_times(tmp_path: Path) -> None:
    reply = reply_to(tmp_path, LOOP, case_of("images"), "time")
    assert reply.outcome and reply.outcome.verdict == "exact" and reply.phases["train"]["times_floor"] > 1
    assert floor.COPY in reply.peaks and "256x10.weight_gradient" in reply.peaks


LIES = {
    "nested": ("case.beta * v", "0.99 * case.beta * v", "first.lif by themselves"),
    "own-constants": ("case.beta * v", "case.beta.mean() * v", "lif by themselves"),
    "recurrent": ("own(s)", "own(s * (t > 3))", "lif1 by themselves"),
    "cubalif": ("case.alpha * i", "0 * i", "neurons by themselves"),
}


@pytest.mark.parametrize("name", LIES)
def test_lie_of_neurons_is_found_at_its_node(tmp_path: Path, name: str) -> None:
    old, new, where = LIES[name]
    assert LOOP.count(old) == 1
    lying = LOOP.replace(old, f"({new} if len(current) > 8 else {old})")  # the exam has eight steps
    outcome = outcome_of(tmp_path, lying, case_of(name))
    assert outcome.kind == "incorrect" and where in outcome.reason, outcome


def test_state_shared_by_the_sites_of_two_inner_graphs_is_found(tmp_path: Path) -> None:
    """The second layer begins where the first one ended."""
    nothing = "torch.zeros_like(current[0])"
    kept = LOOP.replace(nothing, f"{nothing} + Spike.__dict__.get('kept', 0.0)")
    kept = kept.replace(
        "return torch.stack(spikes)",
        "Spike.kept = v.detach().mean() if len(current) > 8 else 0.0\n        return torch.stack(spikes)",
    )
    outcome = outcome_of(tmp_path, kept, case_of("nested"))
    assert outcome.kind == "incorrect" and "second.lif by themselves" in outcome.reason, outcome


class Lying(torch.nn.Module):
    """A module whose value a lie changes, but not in the exam, which has 8 steps of 5 samples."""

    def __init__(self, module: torch.nn.Module, lie: Any) -> None:
        super().__init__()
        self.module, self.lie = module, lie
        for name, parameter in module.named_parameters():
            setattr(self, name, parameter)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The value, or the lie about it."""
        value = self.module(x)
        return self.lie(value) if len(x) > 40 else value


@pytest.mark.parametrize(
    ("name", "lie"),
    [
        ("sum_pool", lambda value: value / 4),
        ("conv2", lambda value: torch.cat([value[: len(value) // 2], 0 * value[len(value) // 2 :]])),
        ("flatten", lambda value: value.roll(1, 1)),
    ],
)
def test_lie_between_sites_is_found_at_its_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, lie: Any
) -> None:
    honest = modules._module

    def lying(operation: Any, parameters: Any, scale: float) -> Any:
        module = honest(operation, parameters, scale)
        return Lying(module, lie) if operation.name == name else module

    monkeypatch.setattr(modules, "_module", lying)
    outcome = outcome_of(tmp_path, LOOP, case_of("images"))
    assert outcome.kind == "incorrect" and f"value of {name} is off" in outcome.reason, outcome


def test_own_decays_are_refused_to_a_library_with_one_for_a_layer(tmp_path: Path) -> None:
    source = LOOP.replace("OWN_DECAYS = True\n", "")
    assert outcome_of(tmp_path, source, case_of("nested")).verdict == "exact"
    with pytest.raises(Unsupported, match="lif: a decay for each neuron: this adapter has one for a layer"):
        reply_to(tmp_path, source, case_of("own-constants"))
