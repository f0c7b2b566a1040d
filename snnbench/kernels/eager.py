"""Autograd's function of a layer, for calls that no compiler and no transform sees.

The operator computes the same, but its dispatch takes longer than a small layer: on an AMD EPYC, a training pass of one
neuron took 2.7 times as long through it (`python -m benchmarks kernels neuron --neurons 1 --batch 1 --steps 1`).
"""

from types import NoneType
from typing import Any

import torch
from torch import Tensor

from snnbench.kernels import pipeline
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.passes import Wanted, prepared

PLAIN = frozenset({Tensor, torch.nn.Parameter, NoneType})
"""Types of tensors whose memory a kernel may read; other subclasses dispatch for themselves."""


def serves(inputs: Tensor, *others: Tensor | None) -> bool:
    """Whether a call may run here: plain tensors, and no compiler, tracer, transform or mode that must see it.

    The tensors are on one device.
    """
    return (
        not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
        and not torch._C._are_functorch_transforms_active()
        and not torch._C._len_torch_dispatch_stack()
        and type(inputs) in PLAIN
        and PLAIN.issuperset(map(type, others))
        and not inputs.is_meta
    )


class Once(torch.autograd.Function):
    """A gradient that refuses to be differentiated again, by any of the tensors that it depends on."""

    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *sources: Tensor | None) -> Tensor:
        """The gradient itself."""
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """Raises RuntimeError."""
        raise RuntimeError("lif has first derivatives only: its gradient cannot be differentiated")


class Function(torch.autograd.Function):
    """The layer with its gradients; `beta` and `threshold` are the learned tensors or None."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        potential: Tensor | None,
        beta: Tensor | None,
        threshold: Tensor | None,
        neuron: Neuron,
        keep: str,
        kernel_name: str,
        needs_last: bool,
    ) -> Any:
        """Spikes [T, B, N], with the potential after the last step [B, N] if it is needed."""
        layer = prepared(inputs, weight, bias, potential, neuron, keep, kernel_name, needs_last)
        spikes, last, saved = pipeline.forward(layer)
        ctx.save_for_backward(inputs, weight, bias, potential, beta, threshold, saved)
        ctx.settings = neuron, keep, kernel_name
        ctx.set_materialize_grads(False)
        return (spikes, last) if needs_last else spikes

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor | None, carried: Tensor | None = None) -> Any:
        """The required gradients for `cotangent` [T, B, N] of the spikes and `carried` [B, N] of the last potential."""
        if torch.is_grad_enabled():  # by create_graph=True
            sources = (*ctx.saved_tensors, cotangent, carried)
            with torch.no_grad():
                gradients = Function.differentiated(ctx, cotangent, carried)
            return tuple(None if gradient is None else Once.apply(gradient, *sources) for gradient in gradients)
        return Function.differentiated(ctx, cotangent, carried)

    @staticmethod
    def differentiated(ctx: Any, cotangent: Tensor | None, carried: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients of all arguments, None for one that does not need any."""
        inputs, weight, bias, potential, beta, threshold, saved = ctx.saved_tensors
        needs = ctx.needs_input_grad
        wanted = Wanted(needs[0], needs[1], needs[2], needs[4] or needs[5], needs[3])
        layer = prepared(inputs, weight, bias, potential, *ctx.settings)
        cotangent = inputs.new_zeros(layer.shape) if cotangent is None else cotangent.contiguous()
        gradients = pipeline.backward(layer, cotangent, carried, saved, wanted)
        return (
            gradients.input,
            gradients.weight,
            gradients.bias.to(bias.dtype) if needs[2] else None,
            gradients.potential.to(potential.dtype) if needs[3] else None,
            gradients.beta.to(beta.dtype).reshape(beta.shape) if needs[4] else None,
            gradients.threshold.to(threshold.dtype).reshape(threshold.shape) if needs[5] else None,
            *[None] * 4,
        )
