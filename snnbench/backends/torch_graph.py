"""A session whose passes are captured in CUDA graphs at their first call, and replayed from then on.

What a graph holds it holds for good, so its memory is that of a first pass, and all of it is retained.

`train` is one graph, forward and backward. `forward` and `backward` are a graph each, which share what is kept between
them. What a graph reads and writes stays where it was, so that a new input is copied into the place of the old one.
Source: the CUDA graphs section of PyTorch's CUDA semantics notes.
"""

import gc
from collections.abc import Callable
from typing import Any

import torch

from snnbench.adapter import Unsupported, Variant
from snnbench.backends import Build
from snnbench.backends.torch_session import Session
from snnbench.inputs import Problem

WARM_UPS = 3
"""Passes before a capture: what allocates, tunes or compiles at first does so outside of it."""


def existing(device: torch.device) -> list[torch.Tensor]:
    """All tensors on a device of this type that Python knows of."""
    # By `type`: isinstance asks an object for its class, which a dead proxy answers with ReferenceError.
    tensors = (candidate for candidate in gc.get_objects() if issubclass(type(candidate), torch.Tensor))
    return [tensor for tensor in tensors if tensor.device.type == device.type]


class Captured(Session):
    """A network on one problem, launched as graphs."""

    def __init__(self, build: Build, variant: Variant, problem: Problem, device: torch.device) -> None:
        super().__init__(build, variant, problem, device)
        self._captured: dict[str, tuple[torch.cuda.CUDAGraph, Any]] = {}

    def inference(self) -> Any:
        """Spikes, without a graph for gradients."""
        return self._replay("inference", super().inference)

    def forward(self) -> Any:
        """Spikes, and what the captured backward pass reads, which lies where every forward pass puts it."""
        if "forward" not in self._captured:
            kept = self._replay("forward", super().forward, warm=super().train)
            # At once: autograd refuses what was kept of an input that has changed in the meantime.
            self._capture("backward", lambda: self.gradients(kept, again=True))
            return kept
        return self._replay("forward", super().forward)

    def backward(self, kept: Any) -> Any:
        """Gradients of what the last forward pass kept."""
        return self._replay("backward", lambda: self.gradients(kept, again=True))

    def train(self) -> Any:
        """Spikes and gradients."""
        return self._replay("train", super().train, warm=super().train)

    def _replay(self, phase: str, run: Callable[[], Any], warm: Callable[[], Any] | None = None) -> Any:
        if phase not in self._captured:
            self._capture(phase, run, warm or run)
        graph, outputs = self._captured[phase]
        graph.replay()
        return outputs

    def _capture(self, phase: str, run: Callable[[], Any], warm: Callable[[], Any] | None = None) -> None:
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS if warm else 0):
                warm()  # type: ignore[misc]
        torch.cuda.current_stream(self.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                outputs = run()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise Unsupported(f"{phase} cannot be captured in a CUDA graph: {str(error).splitlines()[0]}") from error
        self._captured[phase] = graph, outputs
