"""Captured passes, with stand-ins for CUDA's graphs that note when they begin and end and run nothing twice."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from snnbench.adapter import Unsupported, load  # noqa: E402
from snnbench.backends.torch_graph import Captured  # noqa: E402
from snnbench.backends.torch_session import Session  # noqa: E402
from snnbench.declaration import read  # noqa: E402
from snnbench.inputs import Problem  # noqa: E402
from tests.fakes import CASE  # noqa: E402

ADAPTER = Path(__file__).parent.parent / "adapters" / "torch-loop.py"
VARIANT = read(ADAPTER).variants["cuda-graph"]


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would have been captured and replayed."""
    seen: list[str] = []

    class Graph:
        def replay(self) -> None:
            assert "capturing" not in seen[-1:], "nothing is replayed while something is captured"
            seen.append("replay")

    class Stream:
        def __init__(self, device: Any = None) -> None:
            pass

        def wait_stream(self, other: Any) -> None:
            pass

    @contextmanager
    def capture(graph: Any, stream: Any = None) -> Iterator[None]:
        seen.append("capturing")
        yield
        assert seen[-1] == "capturing", "one capture at a time"
        seen[-1] = "captured"

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: Stream())
    return seen


def session(kind: type[Session]) -> Session:
    return kind(load(ADAPTER).build, VARIANT, Problem(CASE), torch.device("cpu"))


def test_a_training_pass_is_one_graph_with_the_eager_answer(trace: list[str]) -> None:
    captured, eager = session(Captured), session(Session)
    spikes, gradients = captured.train()
    assert trace == ["captured", "replay"]
    captured.train()
    assert trace == ["captured", "replay", "replay"]
    expected = eager.answer(*eager.train())
    got = captured.answer(spikes, gradients)
    assert np.array_equal(got.spikes, expected.spikes) and np.array_equal(got.weights[0], expected.weights[0])
    assert np.array_equal(got.input, expected.input)


def test_forward_and_backward_are_captured_together_and_survive_another_input(trace: list[str]) -> None:
    captured, eager = session(Captured), session(Session)
    kept = captured.forward()
    assert trace == ["captured", "replay", "captured"]
    captured.load(1, 1)
    captured.forward()
    gradients = captured.backward(kept)
    assert trace[3:] == ["replay", "replay"]
    expected = eager.answer(None or kept.detach(), eager.backward(eager.forward()))
    got = captured.answer(kept, gradients)
    assert np.array_equal(got.weights[0], expected.weights[0]), "of the first input: a stand-in does not compute again"


def test_inference_is_a_graph_without_gradients(trace: list[str]) -> None:
    spikes = session(Captured).inference()
    assert trace == ["captured", "replay"] and not spikes.requires_grad


def test_what_cannot_be_captured_is_refused_and_what_fails_before_is_not(
    trace: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = session(Captured)
    calls: list[int] = []

    def failing(at: int) -> Any:
        def run() -> Any:
            calls.append(1)
            if len(calls) == at:
                raise RuntimeError("operation not permitted\nwhen stream is capturing")
            return torch.zeros(1)

        return run

    monkeypatch.setattr(captured, "run", failing(4))
    with pytest.raises(Unsupported, match=r"inference cannot be captured in a CUDA graph: operation not permitted$"):
        captured.inference()
    calls.clear()
    monkeypatch.setattr(captured, "run", failing(1))
    with pytest.raises(RuntimeError, match="operation not permitted"):
        captured.inference()
