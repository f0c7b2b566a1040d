"""A layer's pass on a GPU in one stretch of time: each call of Python or torch here delays the next launch.

It computes the same as pipeline.py, which has any number of stretches, with half of the host's time. The kernels for
GPUs read the numbers of steps and columns of their first tensor, and the addresses of all, so none needs a view as
[T, M].
"""

import torch
from torch import Tensor

from snnbench.kernels.choice import module
from snnbench.kernels.passes import Gradients, Layer, Wanted, state_dtype
from snnbench.kernels.sums import Sums

KERNELS = ("cuda", "triton")
KEEPS = ("", "potential", "bfloat16")
"""Values that are kept of every step, or none for inference."""


def serves(layer: Layer) -> bool:
    """Whether a pass runs here: one with a step, a sample, an input and a neuron."""
    return (
        layer.kernel_name in KERNELS
        and layer.keep in KEEPS
        and layer.inputs.numel() > 0
        and (layer.weight is None or layer.weight.numel() > 0)
    )


def forward(layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
    """Spikes [T, B, N], the potential after the last step [B, N] and the kept tensor."""
    inputs, weight, bias, keep = layer.inputs, layer.weight, layer.bias, layer.keep
    steps, batch, neurons = shape = layer.shape
    dtype, state = inputs.dtype, state_dtype(inputs.dtype)
    offset = None
    if weight is None:
        current = inputs
        offset = layer.offset
    else:
        current = inputs.new_empty(shape)
        rows = current.view(steps * batch, neurons)
        # With `out=` autocast does not round a product.
        if bias is not None and bias.dtype == dtype:
            torch.addmm(bias, inputs.view(steps * batch, -1), weight.t(), out=rows)
        else:
            torch.mm(inputs.view(steps * batch, -1), weight.t(), out=rows)
            offset = layer.offset
    saved = None
    if keep:
        storage = torch.bfloat16 if keep == "bfloat16" else state
        in_place = weight is not None and storage == dtype
        saved = current if in_place else inputs.new_empty(shape, dtype=storage)
    spikes = inputs.new_empty(shape)
    if layer.potential is None:
        last = inputs.new_zeros((batch, neurons), dtype=state)
    else:
        last = layer.potential.clone(memory_format=torch.contiguous_format)
    run = module(layer.kernel_name).forward
    run(current, last, spikes, saved, layer.neuron, offset)
    return spikes, last, inputs.new_empty((0,)) if saved is None else saved


def backward(layer: Layer, cotangent: Tensor, carried: Tensor | None, saved: Tensor, wanted: Wanted) -> Gradients:
    """Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential, zeros if None."""
    inputs, weight = layer.inputs, layer.weight
    steps, batch, neurons = cotangent.shape
    dtype, by_bias = state_dtype(inputs.dtype), None
    if carried is not None:
        by_potential = carried.to(dtype, memory_format=torch.contiguous_format, copy=True)
        if wanted.bias:
            by_bias = inputs.new_zeros((batch, neurons), dtype=dtype)
    elif wanted.bias:
        by_potential, by_bias = inputs.new_zeros((2, batch, neurons), dtype=dtype).unbind()
    else:
        by_potential = inputs.new_zeros((batch, neurons), dtype=dtype)
    gradients = Gradients(by_potential)
    gradient = torch.empty_like(cotangent)
    run = module(layer.kernel_name).backward
    run(cotangent, saved, by_potential, gradient, layer.neuron, Sums(by_bias))
    if weight is None:
        gradients.input = gradient if wanted.input else None
    else:
        rows = gradient.view(steps * batch, neurons)
        if wanted.weight:
            gradients.weight = torch.empty_like(weight)
            torch.mm(rows.t(), inputs.view(steps * batch, -1), out=gradients.weight)
        if wanted.input:
            gradients.input = torch.empty_like(inputs)
            torch.mm(rows, weight, out=gradients.input.view(steps * batch, -1))
    if by_bias is not None:
        gradients.bias = by_bias.sum(0)
    return gradients
