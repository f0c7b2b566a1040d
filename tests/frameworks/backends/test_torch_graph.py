"""Tests of captured passes. Stand-ins for CUDA's graphs note their begin and end, and run nothing twice."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from snnbench.adapter.loading import load
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import Unsupported
from snnbench.backends.torch import Backend
from snnbench.backends.torch.arrays import unused_private_bytes
from snnbench.backends.torch.graph import (
    Captured,
    capture_stream,
)
from snnbench.backends.torch.session import Session
from snnbench.cases.operations import INPUT
from snnbench.workloads import network
from snnbench.workloads.linear_lif import Problem, builder
from tests.fakes import CASE, LIF

ADAPTER = Path(__file__).parents[3] / "adapters" / "torch-loop.py"
VARIANT = read(ADAPTER).variants["cuda-graph"]
SHARED = {name: value for name, value in LIF.as_dict().items() if name not in ("workload", "neurons")}
NETWORK = network.Case(
    **SHARED | {"time_steps": 4, "batch": 2},
    width=4,
    model="convolutional",
    image="mnist",
    normalisation="batch",
    input_rate=0.3,
)


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The captures and replays that a GPU would have done."""
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
        if seen[-1] == "failed":
            return
        assert seen[-1] == "capturing", "one capture at a time"
        seen[-1] = "captured"

    capture_stream.cache_clear()
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: Stream())
    return seen


def session(kind: type[Session]) -> Session:
    return kind(builder(load(ADAPTER)), VARIANT, Problem(CASE), torch.device("cpu"))


def test_training_pass_is_one_graph_with_the_eager_answer(trace: list[str]) -> None:
    captured, eager = session(Captured), session(Session)
    spikes, gradients = captured.train()
    assert trace == ["captured", "replay"]
    captured.train()
    assert trace == ["captured", "replay", "replay"]
    expected = eager.answer(*eager.train())
    got = captured.answer(spikes, gradients)
    assert np.array_equal(got.spikes, expected.spikes) and np.array_equal(got.weights[0], expected.weights[0])
    assert np.array_equal(got.input, expected.input)


def test_forward_and_backward_are_captured_together(trace: list[str]) -> None:
    """Another input between the two passes does not break the graph."""
    captured, eager = session(Captured), session(Session)
    spikes = captured.forward()
    assert trace == ["captured", "replay", "captured"]
    captured.load(1, 1)
    captured.forward()
    gradients = captured.backward(spikes)
    assert trace[3:] == ["replay", "replay"]
    expected = eager.answer(None or spikes.detach(), eager.backward(eager.forward()))
    got = captured.answer(spikes, gradients)
    assert np.array_equal(got.weights[0], expected.weights[0]), "of the first input: a stand-in does not compute again"


def test_inference_is_a_graph_without_gradients(trace: list[str]) -> None:
    spikes = session(Captured).inference()
    assert trace == ["captured", "replay"] and not spikes.requires_grad


@pytest.mark.parametrize("normalisation", ["batch", "frozen"])
def test_captured_network_has_the_recorded_answer(trace: list[str], normalisation: Any) -> None:
    """The network is recorded without a graph, by a session of its own."""
    problem = network.Problem(NETWORK.with_(normalisation=normalisation))
    made = network.builder(load(ADAPTER)), VARIANT, problem, torch.device("cpu")
    captured, recorder = Captured(*made), Captured(*made)
    got = captured.answer(*captured.train())
    assert trace == ["captured", "replay"]
    recording = recorder.recorded()
    assert len(trace) == 2
    expected = recording.answer
    assert np.array_equal(got.spikes, expected.spikes)
    assert all(np.array_equal(mine, other) for mine, other in zip(got.weights, expected.weights, strict=True))
    assert set(recording.values) == {INPUT, *(operation.name for operation in problem.operations())}


def test_failed_capture_is_refused_but_failed_warm_up_raises(trace: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_out_of_memory_during_capture_is_not_a_refusal(trace: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a capture hides the first error behind its own. Graphs and cuBLAS have their own error texts."""
    captured = session(Captured)
    backend = Backend(CASE)
    backend.device = torch.device("cuda")
    for first in (
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ):
        monkeypatch.setattr(captured, "run", failing_in_capture(first, trace))
        with pytest.raises(type(first)) as caught:
            captured.inference()
        assert caught.value is first and backend.failure_kind(first) == "oom-device"
    assert backend.failure_kind(RuntimeError("an illegal memory access")) is None


def test_refusal_gives_the_first_error_of_a_capture(trace: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    captured = session(Captured)
    first = RuntimeError("Cannot copy between CPU and CUDA tensors during CUDA graph capture\nunless...")
    monkeypatch.setattr(captured, "run", failing_in_capture(first, trace))
    with pytest.raises(Unsupported, match=r"^inference cannot be captured in a CUDA graph: Cannot copy between"):
        captured.inference()


def failing_in_capture(first: RuntimeError, trace: list[str]) -> Any:
    """A pass that fails during its capture; then the end of the capture fails, too."""

    def run() -> Any:
        if trace[-1:] != ["capturing"]:
            return torch.zeros(1)
        trace[-1] = "failed"
        try:
            raise first
        finally:
            raise RuntimeError("operation failed due to a previous error during capture")

    return run


def test_external_tensors_of_a_graph_are_kept_alive(trace: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """For a library that clears the state of the previous pass and then replaces it."""
    captured = session(Captured)
    states = [torch.ones(3)]
    dead: list[int] = []

    def run() -> Any:
        states[0].zero_()
        read = states[0]
        number = len(states_seen)
        states_seen.append(number)
        weakref.finalize(read, dead.append, number)
        states[0] = read + 1
        return states[0]

    states_seen: list[int] = []
    monkeypatch.setattr(captured, "run", run)
    captured.inference()
    last = len(states_seen) - 1
    assert last not in dead and dead, "the state of the captured pass lives; the states of the warm-up are gone"
    captured._captured.clear()
    gc.collect()
    assert last in dead, "and it lives as long as the graph"


def test_all_captures_of_a_process_share_one_stream(trace: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    real = torch.cuda.graph
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, stream=None: used.append(stream) or real(graph, stream))
    for captured in (session(Captured), session(Captured)):
        captured.inference()
        captured.forward()
        captured.train()
    assert len(used) == 8 and len(set(map(id, used))) == 1


def test_unused_private_memory_of_graphs_is_counted() -> None:
    snapshot = [
        {"segment_pool_id": (0, 0), "total_size": 4096, "allocated_size": 96},
        {"segment_pool_id": (0, 1), "total_size": 2048, "allocated_size": 48},
        {"segment_pool_id": [3, 0], "total_size": 1024, "allocated_size": 1024},
    ]
    assert unused_private_bytes(snapshot) == 2000


def test_device_bytes_count_the_private_memory_of_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Backend(CASE)
    backend.device = torch.device("cuda")
    numbers = {"memory_allocated": 500, "max_memory_allocated": 700, "memory_reserved": 4000}
    for name, number in numbers.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, number=number: number)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 10000))
    segment = {"segment_pool_id": (0, 1), "total_size": 2048, "allocated_size": 48}
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: [segment])
    reset: list[Any] = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset.append)
    assert backend.device_bytes() == {"peak": 2500, "in_use": 2500, "reserved": 4000, "used": 9000}
    assert backend.reset_peak() and reset == [backend.device]
