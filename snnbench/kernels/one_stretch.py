"""A layer's pass on a GPU in one stretch of time: each call of Python or torch here delays the next launch.

It computes the same as pipeline.py, which has any number of stretches, with half of the host's time. The kernels for
GPUs read the numbers of steps and columns of their first tensor, and the addresses of all, so none needs a view as
[T, M].
"""

import torch
from torch import Tensor

from snnbench.kernels.choice import module
from snnbench.kernels.passes import Gradients, Layer, Wanted, state_dtype
from snnbench.kernels.stretches import GPU_STEPS
from snnbench.kernels.sums import Sums

KERNELS = ("cuda", "triton")


def serves(layer: Layer) -> bool:
    """Whether a pass runs here: one with a step, a sample, an input and a neuron, in a single stretch."""
    return (
        layer.kernel_name in KERNELS
        and (layer.keep != "nothing" or layer.inputs.shape[0] <= GPU_STEPS)
        and layer.inputs.numel() > 0
        and (layer.weight is None or layer.weight.numel() > 0)
    )


def forward(layer: Layer) -> tuple[Tensor, Tensor, Tensor]:
    """Spikes [T, B, N], the potential after the last step [B, N] and the kept tensor."""
    inputs, keep = layer.inputs, layer.keep
    current, offset = _current(layer)
    last = _start(layer)
    if keep == "nothing":
        saved, distance = last.clone().view(1, *layer.shape[1:]), None
    elif keep:
        saved = distance = _distances(layer, current)
    else:
        saved, distance = inputs.new_empty((0,)), None
    spikes = inputs.new_empty(layer.shape)
    module(layer.kernel_name).forward(current, last, spikes, distance, layer.neuron, offset)
    return spikes, last, saved


def backward(layer: Layer, cotangent: Tensor, carried: Tensor | None, saved: Tensor, wanted: Wanted) -> Gradients:
    """Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential, zeros if None."""
    inputs, weight = layer.inputs, layer.weight
    steps, batch, neurons = cotangent.shape
    dtype, by_bias = state_dtype(inputs.dtype), None
    distance = _again(layer, saved) if layer.keep == "nothing" else saved
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
    run(cotangent, distance, by_potential, gradient, layer.neuron, Sums(by_bias))
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


def _current(layer: Layer) -> tuple[Tensor, Tensor | None]:
    """Currents [T, B, N], and the bias of every column [B * N] where they lack it."""
    inputs, weight, bias = layer.inputs, layer.weight, layer.bias
    if weight is None:
        return inputs, layer.offset
    current = inputs.new_empty(layer.shape)
    rows, columns = current.view(-1, layer.shape[2]), inputs.view(-1, inputs.shape[2])
    # With `out=` autocast does not round a product.
    if bias is not None and bias.dtype == inputs.dtype:
        torch.addmm(bias, columns, weight.t(), out=rows)
        return current, None
    torch.mm(columns, weight.t(), out=rows)
    return current, layer.offset


def _start(layer: Layer) -> Tensor:
    """A copy of the initial potential [B, N]."""
    if layer.potential is None:
        return layer.start
    return layer.potential.clone(memory_format=torch.contiguous_format)


def _distances(layer: Layer, current: Tensor) -> Tensor:
    """Memory for the kept distances [T, B, N]: that of the currents where the formats agree."""
    storage = torch.bfloat16 if layer.keep == "bfloat16" else state_dtype(current.dtype)
    in_place = layer.weight is not None and storage == current.dtype
    return current if in_place else current.new_empty(layer.shape, dtype=storage)


def _again(layer: Layer, saved: Tensor) -> Tensor:
    """The distances [T, B, N] that were not kept, from the potential [1, B, N] before the first step."""
    current, offset = _current(layer)
    distance, spikes = _distances(layer, current), current.new_empty(layer.shape)
    module(layer.kernel_name).forward(current, saved.clone(), spikes, distance, layer.neuron, offset)
    return distance
