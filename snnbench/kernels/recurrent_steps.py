"""Neurons with a synaptic current and recurrent weights, step by step with the kernel of a plain neuron.

A step has the product of the spikes with R and the kernel of one step; back, the product with R and the kernel. That
needs no kernel of its own, on any device. Without recurrent weights the GPU kernels run all steps with the synaptic
current in a register. What is kept is u - threshold, whose sign bit is the spike.
"""

import torch
from torch import Tensor

from snnbench.kernels import choice
from snnbench.kernels.neuron import Neuron

WITH_SYNAPSE = ("triton", "cuda")
"""Kernels that have a synaptic current of their own."""


def forward(
    current: Tensor, recurrent: Tensor | None, alpha: float, neuron: Neuron, kernel: str
) -> tuple[Tensor, Tensor]:
    """Spikes [T, B, N] and what is kept [T, B, N], for currents [T, B, N] and weights [N, N]."""
    module, potential = choice.module(kernel), current.new_zeros(current.shape[1:])
    spikes, kept = torch.empty_like(current), torch.empty_like(current)
    if recurrent is None and kernel in WITH_SYNAPSE:
        module.forward(current, potential, spikes, kept, neuron, alpha=alpha)
        return spikes, kept
    charge = torch.zeros_like(potential)
    for t, x in enumerate(current.unbind(0)):
        torch.add(x, charge, alpha=alpha, out=charge)
        if recurrent is not None and t:
            charge.addmm_(spikes[t - 1], recurrent.T)
        module.forward(charge[None], potential, spikes[t : t + 1], kept[t : t + 1], neuron)
    return spikes, kept


def backward(
    cotangent: Tensor, kept: Tensor, recurrent: Tensor | None, alpha: float, neuron: Neuron, kernel: str
) -> Tensor:
    """dL/d(current) [T, B, N] for dL/d(spikes) [T, B, N]."""
    module, carried, gradient = choice.module(kernel), kept.new_zeros(kept.shape[1:]), torch.empty_like(kept)
    if recurrent is None and kernel in WITH_SYNAPSE:
        module.backward(cotangent, kept, carried, gradient, neuron, alpha=alpha)
        return gradient
    arriving = torch.empty_like(carried)
    for t in range(len(kept) - 1, -1, -1):
        given, step = cotangent[t], gradient[t : t + 1]
        if recurrent is not None and t + 1 < len(kept):
            given = torch.addmm(given, gradient[t + 1], recurrent, out=arriving)
        module.backward(given[None], kept[t : t + 1], carried, step, neuron)
        if alpha and t + 1 < len(kept):
            gradient[t].add_(gradient[t + 1], alpha=alpha)
    return gradient
