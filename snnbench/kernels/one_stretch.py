"""A layer's pass on a GPU in one stretch of time: each call of Python or torch here delays the next launch.

It computes the same as pipeline.py, which has any number of stretches, with half of the host's time. The kernels for
GPUs read the numbers of steps and columns of their first tensor, and the addresses of all, so none needs a view as
[T, M].
"""

from contextlib import AbstractContextManager, nullcontext

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
    _, batch, neurons = shape = layer.shape
    dtype, state = inputs.dtype, state_dtype(inputs.dtype)
    in_product = weight is not None and bias is not None and bias.dtype == dtype
    offset = None if in_product else layer.offset
    if weight is None:
        current = inputs
    else:
        with _unrounded(inputs):
            current = torch.nn.functional.linear(inputs, weight, bias if in_product else None)
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
        both = inputs.new_zeros((2, batch, neurons), dtype=dtype)
        by_potential, by_bias = both.select(0, 0), both.select(0, 1)  # Tensor.unbind takes the host twice as long
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
        with _unrounded(inputs):
            if wanted.weight:
                gradients.weight = torch.mm(rows.t(), inputs.view(steps * batch, -1))
            if wanted.input:
                gradients.input = torch.mm(rows, weight).view(inputs.shape)
    if by_bias is not None:
        gradients.bias = by_bias.sum(0)
    return gradients


def _unrounded(inputs: Tensor) -> AbstractContextManager[object]:
    """A context in which autocast rounds no product: the layer has the format of its tensors."""
    kind = inputs.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
