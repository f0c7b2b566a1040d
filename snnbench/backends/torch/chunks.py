"""A network of torch on a sequence that comes in chunks, with the state of its neurons carried from one to the next.

If the gradient is carried, too, all chunks make one graph. If it is cut, the backward pass of each chunk comes right
after its forward pass, so only one chunk's graph exists at a time, and the gradients of parameters add up. The input,
the cotangent and the spikes are whole in both.
"""

from typing import Any

import torch
from torch.utils._pytree import tree_map

from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import NO_STATE, Build
from snnbench.backends.torch.session import Session
from snnbench.cases.problem import Problem


class ChunkSession(Session):
    """A network on one problem, whose sequence comes in chunks."""

    def __init__(self, build: Build, variant: Variant, problem: Problem, device: torch.device) -> None:
        super().__init__(build, variant, problem, device)
        if self.network.chunk is None:
            raise Unsupported(NO_STATE)
        case = problem.case
        self._chunk = self._in_way(self.network.chunk)
        self._steps, self._time_axis = case.chunk_steps, self.layout.order.index("T")
        self._cuts, self.retains = case.cuts_gradient, not case.cuts_gradient
        self.forwards = self._in_chunks

    def train(self) -> Any:
        """Spikes and gradients."""
        return self._run(self._chunk_by_chunk) if self._cuts else super().train()

    def _in_chunks(self, x: torch.Tensor) -> torch.Tensor:
        """The spikes of all chunks, with one graph, or one for each chunk if the gradient is cut."""
        states, outputs = None, []
        for chunk in x.split(self._steps, self._time_axis):
            spikes, states = self._chunk(chunk, states)
            states = _detached(states) if self._cuts else states
            outputs.append(spikes)
        return torch.cat(outputs, self._time_axis)

    def _chunk_by_chunk(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Spikes and gradients, with the backward pass of each chunk right after its forward pass."""
        states, entering, count = None, x.detach(), len(self.parameters)
        outputs, by_input = torch.empty(0), torch.empty_like(entering)
        sums: list[torch.Tensor] = []
        length = x.shape[self._time_axis]
        for start in range(0, length, self._steps):
            part = self._time_axis, start, min(self._steps, length - start)
            chunk = entering.narrow(*part).requires_grad_(x.requires_grad)
            spikes, states = self._chunk(chunk, states)
            wanted = [*self.parameters, chunk] if x.requires_grad else self.parameters
            gradients = self.gradients_of_part(spikes, wanted, part)
            states = _detached(states)
            outputs = outputs if start else torch.empty_like(self.cotangent)
            outputs.narrow(*part).copy_(spikes.detach())
            sums = [total + one for total, one in zip(sums, gradients, strict=False)] or list(gradients[:count])
            for gradient in gradients[count:]:
                by_input.narrow(*part).copy_(gradient)
        return outputs, (*sums, by_input) if x.requires_grad else tuple(sums)


def _detached(states: Any) -> Any:
    """The states without their graph."""
    return tree_map(lambda state: state.detach() if isinstance(state, torch.Tensor) else state, states)
