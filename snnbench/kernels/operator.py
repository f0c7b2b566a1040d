"""The operator behind `lif` and `linear_lif`: torch.compile and torch.vmap see it as one operation.

It computes the required gradients of input, weight, bias, initial potential, beta and threshold only. It has first
derivatives, which can be computed repeatedly (`retain_graph`). Beta and threshold are numbers, or learned tensors in
their place.
"""

from typing import Any

import torch
from torch import Tensor

from snnbench.kernels import pipeline, stretches
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.passes import Gradients, Layer, Wanted, prepared, state_dtype

LAYER = "Tensor inputs, Tensor? weight, Tensor? bias, Tensor potential"
SETTINGS = (
    "Tensor? learned_beta, Tensor? learned_threshold, float beta, float threshold, str reset, bool detach_reset, "
    "str surrogate, float slope, str keep, str kernel"
)
"""The last arguments of both operators. A learned value, if there is one, counts in place of the number."""


@torch.library.custom_op("snnbench::lif", mutates_args=(), schema=f"({LAYER}, {SETTINGS}) -> (Tensor, Tensor, Tensor)")
def operator(
    inputs: Tensor, weight: Tensor | None, bias: Tensor | None, potential: Tensor, *settings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return pipeline.forward(_layer(inputs, weight, bias, potential, *settings))


@operator.register_fake
def _(
    inputs: Tensor, weight: Tensor | None, bias: Tensor | None, potential: Tensor, *settings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    *_, keep, kernel = settings
    shape = (inputs.shape[0], *potential.shape)
    saved, dtype = stretches.kept_shape(inputs.device, kernel, shape, weight is not None, keep, inputs.dtype)
    last = potential.new_empty(potential.shape, dtype=state_dtype(inputs.dtype))
    return inputs.new_empty(shape), last, inputs.new_empty(saved, dtype=dtype)


@torch.library.custom_op(
    "snnbench::lif_backward",
    mutates_args=(),
    schema=f"(Tensor cotangent, Tensor carried, {LAYER}, Tensor saved, {SETTINGS}, bool[] wanted) -> Tensor[]",
)
def _lif_backward(cotangent: Tensor, carried: Tensor, *arguments: Any) -> list[Tensor]:
    inputs, weight, bias, potential, saved, *settings, wanted = arguments
    layer = _layer(inputs, weight, bias, potential, *settings)
    gradients = pipeline.backward(layer, cotangent.contiguous(), carried, saved, Wanted(*wanted))
    every = (getattr(gradients, name) for name in Gradients.__slots__)
    return [gradient for gradient in every if gradient is not None]


@_lif_backward.register_fake
def _(cotangent: Tensor, carried: Tensor, *arguments: Any) -> list[Tensor]:
    inputs, weight, _, potential, *_, given = arguments
    wanted = Wanted(*given)
    dtype = state_dtype(inputs.dtype)
    gradients = [potential.new_empty(potential.shape, dtype=dtype)]
    if wanted.input:
        gradients.append(torch.empty_like(inputs, memory_format=torch.contiguous_format))
    if wanted.weight and weight is not None:
        gradients.append(torch.empty_like(weight, memory_format=torch.contiguous_format))
    if wanted.bias:
        gradients.append(inputs.new_empty(potential.shape[-1], dtype=dtype))
    return gradients + [inputs.new_empty((), dtype=dtype) for _ in range(2 * wanted.parameters)]


def _layer(inputs: Tensor, weight: Tensor | None, bias: Tensor | None, potential: Tensor, *settings: Any) -> Layer:
    """The layer of an operator's arguments."""
    learned_beta, learned_threshold, beta, threshold, *kind, keep, kernel = settings
    beta = beta if learned_beta is None else learned_beta.item()
    threshold = threshold if learned_threshold is None else learned_threshold.item()
    return prepared(inputs, weight, bias, potential, Neuron(beta, threshold, *kind), keep, kernel)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    given, weight, bias, potential, learned_beta, learned_threshold, *settings = inputs
    ctx.save_for_backward(given, weight, bias, potential, output[2], learned_beta, learned_threshold)
    ctx.settings = settings
    ctx.mark_non_differentiable(output[2])


def _differentiate(ctx: Any, cotangent: Tensor | None, carried: Tensor | None, _: Any) -> Any:
    given, _, bias, potential, _, learned_beta, learned_threshold = ctx.saved_tensors
    if not ctx.settings[-2]:
        raise RuntimeError("nothing was kept for a backward pass: the argument keep was empty")
    needed = ctx.needs_input_grad
    wanted = Wanted(needed[0], needed[1], needed[2], needed[4] or needed[5])
    if cotangent is None:
        cotangent = given.new_zeros(given.shape[0], *potential.shape)
    if carried is None:
        carried = torch.zeros_like(potential)
    flags = [wanted.input, wanted.weight, wanted.bias, wanted.parameters]
    gradients = iter(_lif_backward(cotangent, carried, *ctx.saved_tensors, *ctx.settings, flags))
    by_potential = next(gradients)
    by_input = next(gradients) if wanted.input else None
    by_weight = next(gradients) if wanted.weight else None
    by_bias = next(gradients) if wanted.bias else None
    by_beta, by_threshold = (next(gradients), next(gradients)) if wanted.parameters else (None, None)
    return (
        by_input,
        by_weight,
        by_bias if by_bias is None else by_bias.to(bias.dtype),
        by_potential.to(potential.dtype) if needed[3] else None,
        _like(by_beta, learned_beta) if needed[4] else None,
        _like(by_threshold, learned_threshold) if needed[5] else None,
        *[None] * len(ctx.settings),
    )


def _like(gradient: Tensor, parameter: Tensor) -> Tensor:
    return gradient.to(parameter.dtype).reshape(parameter.shape)


operator.register_autograd(_differentiate, setup_context=_remember)
