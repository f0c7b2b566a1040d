"""The operator behind `lif` and `linear_lif`: autograd, torch.compile and CUDA graphs see it as one operation.

It computes the required gradients of input, weight, bias, initial potential, beta and threshold only. It has first
derivatives, which can be computed repeatedly (`retain_graph`). Beta and threshold are numbers, or learned tensors in
their place.
"""

from typing import Any

import torch

from snnbench.kernels import pipeline
from snnbench.kernels.neuron import Neuron


@torch.library.custom_op("snnbench::lif", mutates_args=())
def operator(
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor,
    learned_beta: torch.Tensor | None,
    learned_threshold: torch.Tensor | None,
    beta: float,
    threshold: float,
    reset: str,
    detach_reset: bool,
    surrogate: str,
    slope: float,
    keep: str,
    kernel: str,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    neuron = _neuron(learned_beta, learned_threshold, beta, threshold, reset, detach_reset, surrogate, slope)
    state = potential.to(pipeline.state_dtype(inputs.dtype))
    return pipeline.forward(
        inputs.contiguous(), None if weight is None else weight.contiguous(), bias, state, neuron, keep, kernel
    )


@operator.register_fake
def _(
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor,
    *settings: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    *_, keep, kernel = settings
    shape = (inputs.shape[0], *potential.shape)
    saved, dtype = pipeline.kept_shape(inputs.device, kernel, shape, weight is not None, keep, inputs.dtype)
    last = potential.new_empty(potential.shape, dtype=pipeline.state_dtype(inputs.dtype))
    return inputs.new_empty(shape), last, inputs.new_empty(saved, dtype=dtype)


@torch.library.custom_op("snnbench::lif_backward", mutates_args=())
def _lif_backward(
    cotangent: torch.Tensor,
    carried: torch.Tensor,
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor,
    saved: torch.Tensor,
    learned_beta: torch.Tensor | None,
    learned_threshold: torch.Tensor | None,
    beta: float,
    threshold: float,
    reset: str,
    detach_reset: bool,
    surrogate: str,
    slope: float,
    keep: str,
    kernel: str,
    wanted: list[bool],
) -> list[torch.Tensor]:
    neuron = _neuron(learned_beta, learned_threshold, beta, threshold, reset, detach_reset, surrogate, slope)
    state = potential.to(pipeline.state_dtype(inputs.dtype)).contiguous()
    gradients = pipeline.backward(
        cotangent.contiguous(),
        carried,
        inputs.contiguous(),
        None if weight is None else weight.contiguous(),
        bias,
        state,
        saved,
        neuron,
        keep,
        kernel,
        pipeline.Wanted(*wanted),
    )
    every = (
        gradients.potential,
        gradients.input,
        gradients.weight,
        gradients.bias,
        gradients.beta,
        gradients.threshold,
    )
    return [one for one in every if one is not None]


@_lif_backward.register_fake
def _(
    cotangent: torch.Tensor,
    carried: torch.Tensor,
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor,
    saved: torch.Tensor,
    *settings: Any,
) -> list[torch.Tensor]:
    wanted = pipeline.Wanted(*settings[-1])
    dtype = pipeline.state_dtype(inputs.dtype)
    gradients = [potential.new_empty(potential.shape, dtype=dtype)]
    if wanted.input:
        gradients.append(torch.empty_like(inputs, memory_format=torch.contiguous_format))
    if wanted.weight and weight is not None:
        gradients.append(torch.empty_like(weight, memory_format=torch.contiguous_format))
    if wanted.bias:
        gradients.append(inputs.new_empty(potential.shape[-1], dtype=dtype))
    return gradients + [inputs.new_empty((), dtype=dtype) for _ in range(2 * wanted.parameters)]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    given, weight, bias, potential, learned_beta, learned_threshold, *settings = inputs
    ctx.save_for_backward(given, weight, bias, potential, output[2], learned_beta, learned_threshold)
    ctx.settings = settings
    ctx.mark_non_differentiable(output[2])


def _differentiate(ctx: Any, cotangent: torch.Tensor | None, carried: torch.Tensor | None, _: Any) -> Any:
    given, weight, bias, potential, saved, learned_beta, learned_threshold = ctx.saved_tensors
    if not ctx.settings[-2]:
        raise RuntimeError("nothing was kept for a backward pass: inside vmap, lif saw no tensor that needs a gradient")
    needed = ctx.needs_input_grad
    wanted = pipeline.Wanted(needed[0], needed[1], needed[2], needed[4] or needed[5])
    if cotangent is None:
        cotangent = given.new_zeros(given.shape[0], *potential.shape)
    if carried is None:
        carried = torch.zeros_like(potential)
    gradients = iter(
        _lif_backward(
            cotangent,
            carried,
            given,
            weight,
            bias,
            potential,
            saved,
            learned_beta,
            learned_threshold,
            *ctx.settings,
            [wanted.input, wanted.weight, wanted.bias, wanted.parameters],
        )
    )
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


def _neuron(
    learned_beta: torch.Tensor | None,
    learned_threshold: torch.Tensor | None,
    beta: float,
    threshold: float,
    reset: str,
    detach_reset: bool,
    surrogate: str,
    slope: float,
) -> Neuron:
    """The neuron with learned values in place of their numbers."""
    beta = beta if learned_beta is None else learned_beta.item()
    threshold = threshold if learned_threshold is None else learned_threshold.item()
    return Neuron(beta, threshold, reset, detach_reset, surrogate, slope)  # type: ignore[arg-type]


def _like(gradient: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    return gradient.to(parameter.dtype).reshape(parameter.shape)


operator.register_autograd(_differentiate, setup_context=_remember)
