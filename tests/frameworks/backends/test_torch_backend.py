"""Tests of the torch backend on a machine without a GPU: precision, a missing GPU, and a session's own arrays."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from snnbench.adapter.declaration import Variant
from snnbench.adapter.loading import load
from snnbench.adapter.pins import Pins
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import Incorrect, Unavailable
from snnbench.backends import numpy as numpy_backend
from snnbench.backends.torch import Backend, Neuron
from snnbench.backends.torch.session import Session, gradients_of
from snnbench.workloads import lif
from snnbench.workloads.linear_lif import Problem, builder
from tests.fakes import CASE, LIF

VARIANT = Variant(about="", built_as="default", pins=Pins(), backend="torch")

READ_BACK = """
import sys, torch
from snnbench.backends.torch import set_precision
set_precision(sys.argv[1])
tf32 = sys.argv[1] == "tf32"
assert torch.get_float32_matmul_precision() == ("high" if tf32 else "highest")
assert torch.backends.cuda.matmul.allow_tf32 is tf32
assert torch.backends.cudnn.allow_tf32 is tf32
with torch.backends.cudnn.flags():
    pass
news = torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn
assert {one.fp32_precision for one in news} == {sys.argv[1]}
"""


@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_old_and_new_precision_switches_agree(precision: str) -> None:
    subprocess.run([sys.executable, "-c", READ_BACK, precision], check=True)


@pytest.mark.parametrize(
    ("cuda", "reason"),
    [(None, "is built without CUDA; install its CUDA build"), ("13.0", "its CUDA 13.0 may need a newer NVIDIA driver")],
)
def test_machine_without_usable_gpu_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, cuda: str | None, reason: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    with pytest.raises(Unavailable, match=reason):
        Backend(CASE.with_(device="cuda"))


def test_sessions_have_their_own_arrays() -> None:
    path = Path(__file__).parents[3] / "adapters" / "torch-loop.py"
    variant = read(path).variants["unbind"]
    for session_of in (
        lambda problem: Session(builder(load(path)), variant, problem, torch.device("cpu")),
        lambda problem: numpy_backend.Session(lambda *given: None, variant, problem),  # type: ignore[arg-type,return-value]
    ):
        problem = Problem(CASE)
        session = session_of(problem)  # type: ignore[no-untyped-call]
        before = sums(session)
        problem.input(0)[...] = 0
        problem.cotangent(0)[...] = 0
        assert before[0] > 0 and sums(session) == before


def test_cotangent_may_come_after_a_forward_pass() -> None:
    path = Path(__file__).parents[3] / "adapters" / "torch-loop.py"
    session = Session(builder(load(path)), read(path).variants["unbind"], Problem(CASE), torch.device("cpu"))
    session.load(1, 1)
    expected = session.answer(*session.train())
    session.load(1, 0)
    saved = session.forward()
    session.load_cotangent(1)
    answer = session.answer(session.spikes_of(saved), session.backward(saved))
    assert np.array_equal(answer.weights[0], expected.weights[0])  # type: ignore[index]


class Lazy(torch.Tensor):
    """A tensor that may compute when it is read."""


def test_output_of_another_type_is_incorrect() -> None:
    path = Path(__file__).parents[3] / "adapters" / "torch-loop.py"
    session = Session(builder(load(path)), read(path).variants["unbind"], Problem(CASE), torch.device("cpu"))
    spikes = session.inference()
    assert [each.shape for each in session.storage(spikes, None)] == [tuple(spikes.shape)]
    for wrong in (spikes.as_subclass(Lazy), spikes.to_sparse(), spikes.tolist()):
        with pytest.raises(Incorrect, match="return plain arrays"):
            session.answer(wrong, None)


@pytest.mark.parametrize("again", [False, True])
def test_engine_gradients_equal_autograd(again: bool) -> None:
    weight = torch.randn(3, 4, requires_grad=True)
    entering, cotangent = torch.randn(5, 4, requires_grad=True), torch.randn(5, 3)
    output = (entering @ weight.T).tanh()
    expected = torch.autograd.grad(output, [weight, entering], cotangent, retain_graph=True)
    for _ in range(1 + again):
        gradients = gradients_of(output, [weight, entering], cotangent, again)
        assert all(map(torch.equal, gradients, expected))
    if not again:
        with pytest.raises(RuntimeError, match="second time"):
            gradients_of(output, [weight, entering], cotangent)


@pytest.mark.parametrize("shape", [(3, 5), (3,), (1, 1), (5, 3, 1)])
def test_cotangent_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    entering = torch.randn(5, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="shape"):
        gradients_of(entering * 2, [entering], torch.ones(shape))


def test_gradients_load_no_sympy() -> None:
    """It takes as long to import as a small cell's passes."""
    source = (
        "import sys, torch\n"
        "from snnbench.backends.torch.session import gradients_of\n"
        "entering = torch.ones(3, requires_grad=True)\n"
        "gradients_of(entering * 2, [entering], torch.ones(3))\n"
        "assert 'sympy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


def sums(session: Any) -> tuple[float, float]:
    """Sums of a session's input and cotangent."""
    return float(torch.as_tensor(session.input).detach().sum()), float(session.cotangent.sum())


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        (lambda spikes: spikes.transpose(0, 1), "output of shape [7, 20, 48], expected [20, 7, 48]: [T, B, N]"),
        (lambda spikes: (spikes, None), "the output is a tuple, expected an array of spikes [T, B, N]"),
    ],
)
@pytest.mark.parametrize("phase", ["train", "backward"])
def test_output_of_another_shape_or_type_is_named(output: Any, complaint: str, phase: str) -> None:
    network = Neuron(lambda neurons: output).alone(LIF.neurons)
    session = Backend(LIF).session(lambda *given: network, VARIANT, lif.Problem(LIF))
    with pytest.raises(Incorrect, match=re.escape(complaint)):
        session.train() if phase == "train" else session.backward(session.forward())
