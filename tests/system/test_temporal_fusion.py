"""Tests of adapters/temporal-fusion.py on the CPU: a module written from the equations replaces the compiled one.

The exam must pass with it, and must find every wrong call and every wrong module that still gives an answer.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
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
from snnbench.cases.case import Case
from snnbench.proof import exam
from snnbench.proof.passes import pieces
from snnbench.proof.spotcheck import SpotCheck
from snnbench.workloads.linear_lif import Problem
from snnbench.workloads.linear_lif import exam as exam_problem
from tests.fakes import CASE, profile

PATH = data_folder("adapters") / "temporal-fusion.py"
NEURON = replace(CASE, **profile("zero-attached"), surrogate="rectangle")
Gradient = Callable[[Any, Any, Any, float, float], Any]
"""dv[t+1]/dv[t] from spikes, potentials, the surrogate's value, decay and threshold."""


def attached(y: Any, v: Any, surrogate: Any, decay: float, threshold: float) -> Any:
    """v' = decay * v * (1 - y), with y a function of v."""
    return decay * (1 - y - v * surrogate)


def fused_forward(
    x: Any, stored: Any, y: Any, steps: int, decay: float, threshold: float, rest: float, every: bool
) -> None:
    """Compute the same as fusedForwardLIF."""
    assert all(tensor.is_contiguous() and tensor.dtype == torch.float32 for tensor in (x, stored, y))
    assert len(x) == steps and stored.shape == (x.shape if every else x[0].shape)
    v = torch.full_like(x[0], rest)
    s = torch.zeros_like(v)
    for t in range(steps):
        v = decay * v * (1 - s) + rest * s + x[t]
        y[t] = s = (v >= threshold).float()
        (stored[t] if every else stored).copy_(v)


def module(forward: Any = fused_forward, through: Gradient = attached, half_width: float = 0.5) -> ModuleType:
    """A temporal_fusion_kernel."""

    def fused_backward(gy: Any, gx: Any, y: Any, v: Any, steps: int, decay: float, threshold: float) -> None:
        assert all(tensor.is_contiguous() and tensor.shape == y.shape for tensor in (gy, gx, v))
        carried = torch.zeros_like(y[0])
        for t in reversed(range(steps)):
            surrogate = ((v[t] - threshold).abs() < half_width).float()
            gx[t] = carried = gy[t] * surrogate + carried * through(y[t], v[t], surrogate, decay, threshold)

    made = ModuleType("temporal_fusion_kernel")
    made.fusedForwardLIF, made.fusedBackwardLIF = forward, fused_backward
    return made


def session(problem: Problem) -> Session:
    """The adapter's network on the CPU, which its declaration does not offer."""
    build = linear_lif.builder(loading.load(PATH))
    return Session(build, reading.read(PATH).variants["default"], problem, torch.device("cpu"))


def complaints(case: Case) -> str:
    """The exam's complaints about the network."""
    problem = exam_problem(case, case.layers)
    sitting = session(problem)

    def answer(which: int, cotangent: int) -> Answer:
        sitting.load(which, cotangent)
        return sitting.answer(*sitting.train())

    return exam.run_exam(problem, answer).message


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType | None], None]:
    """A function that puts a module in the compiled one's place; None removes it."""
    return lambda made: monkeypatch.setitem(sys.modules, "temporal_fusion_kernel", made)


@pytest.mark.parametrize("layers", [1, 2])
def test_adapter_equals_the_reference(layers: int, installed: Any) -> None:
    installed(module())
    case = NEURON.with_(layers=layers)
    assert complaints(case) == ""
    problem = Problem(case)
    measured = session(problem)
    measured.load(1, 1)
    for piece in pieces(measured).values():
        outputs = piece.run(piece.prepare() if piece.prepare else None)
        assert SpotCheck(problem, 1).check(measured.answer(*piece.parts(outputs))).message == ""


def undecayed(x: Any, stored: Any, y: Any, steps: int, decay: float, *rest: Any) -> None:
    """fused_forward without decay."""
    fused_forward(x, stored, y, steps, 1.0, *rest)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (module(through=lambda y, v, surrogate, decay, threshold: decay * (1 - y)), "gradient of weight is off"),
        (module(through=lambda y, v, surrogate, decay, threshold: decay * (1 - threshold * surrogate)), "gradient"),
        (module(half_width=1.0), "gradient of weight is off"),
        (module(forward=undecayed), "spikes differ"),
    ],
    ids=["detached", "subtracting", "wide", "undecayed"],
)
def test_another_neuron_is_found(wrong: ModuleType, complaint: str, installed: Any) -> None:
    installed(wrong)
    assert complaint in complaints(NEURON)


def test_missing_module_is_unavailable(installed: Any) -> None:
    installed(None)
    with pytest.raises(refusal.Unavailable, match="EMI-Group/snn-temporal-fusion"):
        session(Problem(NEURON))


@pytest.mark.parametrize(
    "changes",
    [{"surrogate": "fast_sigmoid"}, {"slope": 2.0}, {"dtype": "float64"}, {"threshold": 0.0}],
)
def test_unsupported_case_is_refused(changes: dict[str, Any], installed: Any) -> None:
    installed(module())
    with pytest.raises(refusal.Unsupported):
        session(Problem(NEURON.with_(**changes)))
