"""A session whose passes are captured in CUDA graphs at their first call, and replayed from then on.

`train` is one graph, forward and backward. `forward` and `backward` are a graph each, which share what is kept between
them. What a graph reads and writes stays where it was, so that a new input is copied into the place of the old one.
Source: the CUDA graphs section of PyTorch's CUDA semantics notes.
"""

from collections.abc import Callable
from typing import Any

import torch

from snnbench.adapter import Unsupported, Variant
from snnbench.backends import Build
from snnbench.backends.torch_session import Session
from snnbench.inputs import Problem

WARM_UPS = 3
"""Passes before a capture: what allocates, tunes or compiles at first does so outside of it."""


class Captured(Session):
    """A network on one problem, launched as graphs."""

    def __init__(self, build: Build, variant: Variant, problem: Problem, device: torch.device) -> None:
        super().__init__(build, variant, problem, device)
        self._graphs: dict[str, tuple[torch.cuda.CUDAGraph, Any]] = {}

    def compile(self, phase: str) -> None:
        """Capture ahead of the first call."""
        runs = {"inference": super().inference, "forward": super().forward, "train": super().train}
        if phase not in self._graphs:
            self._capture(phase, runs[phase])

    def inference(self) -> Any:
        """Spikes, without a graph for gradients."""
        return self._replay("inference")

    def forward(self) -> Any:
        """Spikes, and what the captured backward pass reads."""
        return self._replay("forward")

    def backward(self, kept: Any) -> Any:
        """Gradients of what the last forward pass kept, which lies where every one of them puts it."""
        if "backward" not in self._graphs:
            self._capture(
                "backward", lambda: torch.autograd.grad(kept, self.wanted, self.incoming(kept), retain_graph=True)
            )
        return self._replay("backward")

    def train(self) -> Any:
        """Spikes and gradients."""
        return self._replay("train")

    def _replay(self, phase: str) -> Any:
        if phase not in self._graphs:
            self.compile(phase)
        graph, outputs = self._graphs[phase]
        graph.replay()
        return outputs

    def _capture(self, phase: str, run: Callable[[], Any]) -> None:
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        try:
            with torch.cuda.stream(stream):
                for _ in range(WARM_UPS):
                    run()
            torch.cuda.current_stream(self.device).wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                outputs = run()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise Unsupported(f"{phase} cannot be captured in a CUDA graph: {str(error).splitlines()[0]}") from error
        self._graphs[phase] = graph, outputs
