"""The LIF neuron as a plain loop with autograd: slow and readable, on any device, in any floating format.

It keeps every intermediate result of every step, about 30 bytes a neuron-step in float32. All gradients but the spike's
are torch's own. `neuron.beta` and `neuron.threshold` may be tensors that require gradients.
"""

from typing import Any

import torch

from snnbench.cases.surrogate import FORMULAS
from snnbench.kernels.neuron import Neuron


class Spike(torch.autograd.Function):
    """1 where `distance` >= 0; its derivative is the surrogate's."""

    @staticmethod
    def forward(ctx: Any, distance: torch.Tensor, surrogate: str, slope: float, threshold: float) -> torch.Tensor:
        """Spikes at these distances."""
        ctx.save_for_backward(distance)
        ctx.formula = surrogate, slope, threshold
        return (distance >= 0).to(distance.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """The surrogate in place of the derivative."""
        (distance,) = ctx.saved_tensors
        name, slope, threshold = ctx.formula
        return gradient * FORMULAS[name](distance, slope, threshold, torch), None, None, None


def lif(
    current: torch.Tensor, neuron: Neuron, potential: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Spikes [T, ...] for `current` [T, ...], and the potential after the last step; `potential` defaults to 0."""
    v = current.new_zeros(current.shape[1:]) if potential is None else potential
    threshold = neuron.threshold
    height = threshold.item() if isinstance(threshold, torch.Tensor) else threshold
    spikes = []
    for x in current.unbind(0):
        u = neuron.beta * v + x
        s = Spike.apply(u - threshold, neuron.surrogate, neuron.slope, height)
        reset_spikes = s.detach() if neuron.detach_reset else s
        v = u - threshold * reset_spikes if neuron.reset == "subtract" else u * (1 - reset_spikes)
        spikes.append(s)
    return torch.stack(spikes) if spikes else torch.empty_like(current), v
