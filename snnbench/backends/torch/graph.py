"""A session that captures its passes in CUDA graphs at their first call, and replays them later.

`train` is one graph, forward and backward. `forward` and `backward` are a graph each and share the kept values. A graph
reads and writes fixed addresses, so a new input is copied over the old one.

A graph holds its memory for good, so its memory is that of a first pass, and all of it is retained. Outside memory that
it reads must stay, too: if a library replaces its state in every pass, it drops the captured state, and the allocator
would reuse that memory. So every tensor on the device at the start of a capture is kept.

One stream serves every warm-up and capture of the process. A backward pass runs on its forward pass's stream, and
cuBLAS keeps a workspace for each stream, so the exam already allocates it.
Source: the CUDA graphs section of PyTorch's CUDA semantics notes.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import Build
from snnbench.backends.torch.errors import first_cause, is_out_of_device_memory
from snnbench.backends.torch.session import Session
from snnbench.cases.problem import Problem

WARM_UPS = 3
"""Passes before a capture: first allocations, tuning and compilation happen outside of it."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A graph, the outputs of its replays, and the tensors that existed before it, which it may read."""

    graph: torch.cuda.CUDAGraph
    outputs: Any
    held: list[torch.Tensor]


class Captured(Session):
    """A network on one problem, launched as graphs."""

    def __init__(self, build: Build, variant: Variant, problem: Problem, device: torch.device) -> None:
        super().__init__(build, variant, problem, device)
        self._captured: dict[str, Capture] = {}

    def inference(self) -> Any:
        """Spikes, without a graph for gradients."""
        return self._replay("inference", super().inference)

    def forward(self) -> Any:
        """Spikes, and the values that the captured backward pass reads at fixed addresses."""
        if "forward" not in self._captured:
            saved = self._replay("forward", super().forward, warm=super().train)
            # At once: autograd rejects kept values of an input that has changed since.
            self._capture("backward", lambda: self.gradients(saved, again=True))
            return saved
        return self._replay("forward", super().forward)

    def backward(self, saved: Any) -> Any:
        """Gradients from the values that the last forward pass kept."""
        return self._replay("backward", lambda: self.gradients(saved, again=True))

    def train(self) -> Any:
        """Spikes and gradients."""
        return self._replay("train", super().train, warm=super().train)

    def _replay(self, phase: str, run: Callable[[], Any], warm: Callable[[], Any] | None = None) -> Any:
        if phase not in self._captured:
            self._capture(phase, run, warm or run)
        capture = self._captured[phase]
        capture.graph.replay()
        return capture.outputs

    def _capture(self, phase: str, run: Callable[[], Any], warm: Callable[[], Any] | None = None) -> None:
        stream = capture_stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS if warm else 0):
                warm()  # type: ignore[misc]
        torch.cuda.current_stream(self.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        held = existing(self.device)
        try:
            with torch.cuda.graph(graph, stream=stream):
                outputs = run()
        except RuntimeError as error:
            cause = first_cause(error)
            if is_out_of_device_memory(cause):
                raise cause  # noqa: B904  # the end of the capture would hide it
            reason = str(cause).strip().partition("\n")[0]
            raise Unsupported(f"{phase} cannot be captured in a CUDA graph: {reason}") from error
        self._captured[phase] = Capture(graph, outputs, held)


@cache
def capture_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream of every warm-up and capture of this process."""
    return torch.cuda.Stream(device)


def existing(device: torch.device) -> list[torch.Tensor]:
    """Every tensor of this process on a device."""
    gc.unfreeze()  # frozen objects are not in gc.get_objects()
    # By type: isinstance would ask a weak proxy for the class of a dead object.
    tensors = (thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor))
    return [tensor for tensor in tensors if tensor.device.type == device.type]
