"""Tests of adapters/snntorch-ipu.py without an IPU: stand-ins for PopTorch and the neuron, from their documentation.

The tests show that the adapter uses the documented options, and that the exam finds a different neuron.
"""

import sys
from types import ModuleType
from typing import Any

import pytest

from snnbench.adapter import loading
from snnbench.workloads import linear_lif

torch = pytest.importorskip("torch")

from snnbench.adapter import (
    reading,
    refusal,
)
from snnbench.adapter.discovery import data_folder
from snnbench.backends.torch.session import Session
from snnbench.cases.answer import Answer
from snnbench.proof import exam
from snnbench.workloads.linear_lif import exam as exam_problem
from tests.fakes import CASE, profile

PATH = data_folder("adapters") / "snntorch-ipu.py"


class Leaky(torch.nn.Module):
    """The update of snntorch-ipu; `late` subtracts the threshold after the decay, as snnTorch itself does."""

    late = False

    def __init__(self, beta: float, threshold: float, reset_mechanism: str) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold
        self.step = threshold if reset_mechanism == "subtract" else 0.0

    def fire(self, distance: Any) -> Any:
        """1 from 0 on, like the operator that it compiles."""
        return (distance >= 0).to(distance.dtype)

    def forward(self, current: Any, potential: Any) -> Any:
        reset = self.step * self.fire(potential - self.threshold)
        potential = self.beta * (potential if self.late else potential - reset) + current
        potential = potential - reset if self.late else potential
        return self.fire(potential - self.threshold), potential


class Options:
    """PopTorch's options."""

    def __init__(self) -> None:
        self.model: bool | None = None

    def useIpuModel(self, use_model: bool) -> "Options":
        self.model = use_model
        return self


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """Install the stand-ins. Returns the options of each compiled network."""
    compiled: list[Options] = []
    poptorch, snntorch = ModuleType("poptorch"), ModuleType("snntorch")
    poptorch.Options = Options
    poptorch.inferenceModel = lambda net, options: (compiled.append(options), net)[1]
    snntorch.Leaky = Leaky
    for module in (poptorch, snntorch):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return compiled


def complaints(profile_name: str, layers: int, variant: str) -> str:
    """The exam's complaints about the spikes."""
    problem = exam_problem(CASE.with_(**profile(profile_name)), layers)
    build = linear_lif.builder(loading.load(PATH))
    session = Session(build, reading.read(PATH).variants[variant], problem, torch.device("cpu"))

    def answer(which: int, cotangent: int) -> Answer:
        session.load(which, cotangent)
        return session.answer(session.inference(), None)

    return exam.run_exam(problem, answer, backward=False).message


@pytest.mark.parametrize("variant", ["model", "ipu"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", reading.read(PATH).variants["ipu"].exact)
def test_adapter_equals_the_reference(name: str, layers: int, variant: str, stand_ins: list[Options]) -> None:
    assert complaints(name, layers, variant) == ""
    assert [options.model for options in stand_ins] == [variant == "model"]


def test_another_neuron_is_found(stand_ins: list[Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leaky, "late", True)
    assert "spikes differ" in complaints("subtract", 1, "model")


def test_reset_to_zero_is_refused(stand_ins: list[Options]) -> None:
    with pytest.raises(refusal.Unsupported, match="drops an input"):
        complaints("zero", 1, "model")


def test_missing_poptorch_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "poptorch", None)
    with pytest.raises(refusal.Unavailable, match="Poplar SDK"):
        complaints("subtract", 1, "model")
