"""The neuron alone without kept steps, by a kernel that computes potentials again while they are in the cache.

Such a kernel has two functions beside those of kernels/__init__.py. M = batch * neurons; tensors [T, M] have rows of
contiguous numbers, equally far apart in all of them, and may be columns of wider tensors. States, sums and the bias are
as there:

    forward_alone(current, potential, spikes, states, last, neuron, bias=None)
        current [T, M]    potential [M] or None: v before the first step, zeros if None
        spikes [T, M]: written          states [(T - 1) // STRETCH, M] or None: written, v before each stretch of time
        last [M] or None: written, v after the last step       but the first
    backward_alone(current, cotangent, potential, states, carried, gradient, first, neuron, bias=None, sums=NO_SUMS)
        carried [M] or None: dL/dv after the last step, zeros if None
        gradient [T, M]: written, dL/dx                        first [M] or None: written, dL/dv before the first step

A training pass reads currents twice and cotangents once, and writes spikes and gradients: the least numbers that there
are. Between the passes it needs the caller's currents and one state in STRETCH steps.
"""

from typing import Any

from torch import Tensor

from snnbench.kernels import buffers
from snnbench.kernels.choice import module
from snnbench.kernels.passes import Gradients, Layer, Wanted, state_dtype
from snnbench.kernels.sums import Sums

KERNELS = ("cpu",)
"""Kernels that have these functions."""


def serves(kernel_name: str, linear: bool, keep: str) -> bool:
    """Whether a pass runs here, and not in the pipeline."""
    return not linear and kernel_name in KERNELS and keep in ("", "nothing")


def states_shape(kernel_name: str, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """The shape of the states between the passes, for spikes of `shape` [T, B, N]."""
    steps, batch, neurons = shape
    return max(0, (steps - 1) // module(kernel_name).STRETCH), batch, neurons


def forward(layer: Layer, spikes: Tensor | None = None) -> tuple[Tensor, Any, Tensor]:
    """Spikes [T, B, N], the potential after the last step [B, N] if it is needed, and the states for `backward`.

    The spikes are written to `spikes`, whose rows are as far apart as those of the currents, or to a new tensor.
    """
    inputs, shape, dtype = layer.inputs, layer.shape, state_dtype(layer.inputs.dtype)
    if spikes is None:
        spikes = buffers.empty(shape, inputs.dtype, inputs.device)
    states = inputs.new_empty(states_shape(layer.kernel_name, shape) if layer.keep else (0,), dtype=dtype)
    last = inputs.new_empty(shape[1:], dtype=dtype) if layer.needs_last else None
    module(layer.kernel_name).forward_alone(
        inputs.view(shape[0], shape[1] * shape[2]),
        layer.potential,
        spikes.view(shape[0], shape[1] * shape[2]),
        states if layer.keep else None,
        last,
        layer.neuron,
        layer.offset,
    )
    return spikes, last, states


def backward(
    layer: Layer,
    cotangent: Tensor,
    carried: Tensor | None,
    states: Tensor,
    wanted: Wanted,
    gradient: Tensor | None = None,
) -> Gradients:
    """Gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential, zeros if None.

    That of the currents is written to `gradient`, whose rows are as far apart as theirs, or to a new tensor.
    """
    inputs, (steps, batch, neurons) = layer.inputs, layer.shape
    dtype = state_dtype(inputs.dtype)

    def zeros(required: bool) -> Tensor | None:
        return inputs.new_zeros(batch * neurons, dtype=dtype) if required else None

    sums = Sums(zeros(wanted.bias), zeros(wanted.parameters), zeros(wanted.parameters))
    if gradient is None:
        gradient = buffers.empty((steps, batch, neurons), inputs.dtype, inputs.device)
    first = inputs.new_empty((batch, neurons), dtype=dtype) if wanted.potential else None
    module(layer.kernel_name).backward_alone(
        inputs.view(steps, batch * neurons),
        cotangent.view(steps, batch * neurons),
        layer.potential,
        states,
        None if carried is None else carried.to(dtype).contiguous(),
        gradient.view(steps, batch * neurons),
        first,
        layer.neuron,
        layer.offset,
        sums,
    )
    gradients = Gradients(first, gradient if wanted.input else None)
    if sums.bias is not None:
        gradients.bias = sums.bias.view(batch, neurons).sum(0)
    if sums.beta is not None and sums.threshold is not None:
        gradients.beta, gradients.threshold = sums.beta.sum(), sums.threshold.sum()
    return gradients
