"""The operator behind `lif` and `linear_lif`: autograd, torch.compile and CUDA graphs see it, and nothing inside.

Gradients of input, weight, bias, initial potential, beta and threshold, and only of those that are asked for. It can be
differentiated once, any number of times (`retain_graph`). The surrogate's width is not a parameter to learn.
"""

from typing import Any, TypeAlias

import torch

from snnbench.kernels import pipeline
from snnbench.kernels.neuron import Neuron, Reset

Number: TypeAlias = "float | torch.Tensor"


def lif(
    current: torch.Tensor,
    *,
    beta: Number,
    threshold: Number,
    reset: Reset = "subtract",
    detach_reset: bool = False,
    surrogate: str = "fast_sigmoid",
    slope: float = 1.0,
    potential: torch.Tensor | None = None,
    return_potential: bool = False,
    keep: str = "potential",
    kernel: str = "auto",
) -> Any:
    """Spikes [T, B, N] of leaky integrate-and-fire neurons for `current` [T, B, N]; equations in kernels/neuron.py.

    `beta` and `threshold` are numbers, or tensors of one element to learn. `potential` [B, N] is where the neurons
    start, 0 if left out; with `return_potential` the result is (spikes, potential after the last step), so that a long
    sequence can be run in pieces. `keep` says what is kept for the backward pass (kernels/pipeline.py), `kernel` what
    computes it: "auto" is `snnbench.kernels.automatic`. Formats are float32, float64, bfloat16 and float16, the last
    two with a state in float32. A learned tensor on a GPU is waited for in each call, which no CUDA graph can capture.
    Raises ValueError for a word or shape that does not fit, Unavailable where the kernel cannot run.
    """
    neuron = Neuron(_value(beta), _value(threshold), reset, detach_reset, surrogate, slope)
    spikes, last = _call(current, None, None, potential, beta, threshold, neuron, keep, kernel)
    return (spikes, last) if return_potential else spikes


def linear_lif(
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None = None,
    *,
    beta: Number,
    threshold: Number,
    reset: Reset = "subtract",
    detach_reset: bool = False,
    surrogate: str = "fast_sigmoid",
    slope: float = 1.0,
    potential: torch.Tensor | None = None,
    return_potential: bool = False,
    keep: str = "potential",
    kernel: str = "auto",
) -> Any:
    """Spikes [T, B, N_out] of `lif` over `inputs` [T, B, N_in] @ weight [N_out, N_in].T + bias [N_out].

    The product is the framework's own, the bias and the neuron are fused behind it; without a weight the inputs are the
    currents. Everything else as in `lif`.
    """
    neuron = Neuron(_value(beta), _value(threshold), reset, detach_reset, surrogate, slope)
    spikes, last = _call(inputs, weight, bias, potential, beta, threshold, neuron, keep, kernel)
    return (spikes, last) if return_potential else spikes


def _value(number: Number) -> float:
    """What a number is; a tensor is read by the operator only, so that a compiler need not wait for it."""
    return 1.0 if isinstance(number, torch.Tensor) else float(number)


@torch.compiler.assume_constant_result
def _chosen(kernel: str, device: torch.device, dtype: torch.dtype) -> str:
    """The kernel that will run. Raises Unavailable."""
    name = pipeline.automatic(device, dtype) if kernel == "auto" else kernel
    pipeline.require(name, device, dtype)
    return name


def _call(
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor | None,
    beta: Number,
    threshold: Number,
    neuron: Neuron,
    keep: str,
    kernel: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    if inputs.ndim != 3:
        raise ValueError(f"input has the shape {list(inputs.shape)}: expected [T, B, N]")
    if keep not in pipeline.KEEPS:
        raise ValueError(f"keep {keep!r}: expected one of {', '.join(pipeline.KEEPS)}")
    if kernel not in ("auto", *pipeline.KERNELS):
        raise ValueError(f"kernel {kernel!r}: expected auto or one of {', '.join(pipeline.KERNELS)}")
    neurons = inputs.shape[2] if weight is None else weight.shape[0]
    if weight is not None and weight.shape[1] != inputs.shape[2]:
        raise ValueError(f"weight has the shape {list(weight.shape)}: expected [N_out, {inputs.shape[2]}]")
    if potential is None:
        potential = inputs.new_zeros(inputs.shape[1], neurons, dtype=pipeline.state_dtype(inputs.dtype))
    elif potential.shape != (inputs.shape[1], neurons):
        raise ValueError(f"potential has the shape {list(potential.shape)}: expected {[inputs.shape[1], neurons]}")
    if inputs.dtype not in pipeline.DTYPES:
        raise ValueError(f"input in {inputs.dtype}: expected one of {', '.join(map(str, pipeline.DTYPES))}")
    for name, one in (("weight", weight), ("bias", bias), ("potential", potential)):
        if one is not None and one.device != inputs.device:
            raise ValueError(f"{name} is on {one.device}, the input on {inputs.device}: expected one device")
    if weight is not None and weight.dtype != inputs.dtype:
        raise ValueError(f"weight is in {weight.dtype}, the input in {inputs.dtype}: expected one format")
    learned = [one if isinstance(one, torch.Tensor) else None for one in (beta, threshold)]
    tensors = (inputs, weight, bias, potential, *learned)
    differentiated = torch.is_grad_enabled() and any(one is not None and one.requires_grad for one in tensors)
    spikes, last, _ = _lif(
        inputs,
        weight,
        bias,
        potential,
        *learned,
        neuron.beta,
        neuron.threshold,
        neuron.reset,
        neuron.detach_reset,
        neuron.surrogate,
        neuron.slope,
        keep if differentiated else "",
        _chosen(kernel, inputs.device, inputs.dtype),
    )
    return spikes, last


@torch.library.custom_op("snnbench::lif", mutates_args=())
def _lif(
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


@_lif.register_fake
def _(
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor,
    *settings: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    *_, keep, kernel = settings
    shape = (inputs.shape[0], *potential.shape)
    kept, dtype = pipeline.kept_shape(inputs.device, kernel, shape, weight is not None, keep, inputs.dtype)
    last = potential.new_empty(potential.shape, dtype=pipeline.state_dtype(inputs.dtype))
    return inputs.new_empty(shape), last, inputs.new_empty(kept, dtype=dtype)


@torch.library.custom_op("snnbench::lif_backward", mutates_args=())
def _lif_backward(
    cotangent: torch.Tensor,
    carried: torch.Tensor,
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor,
    kept: torch.Tensor,
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
    found = pipeline.backward(
        cotangent.contiguous(),
        carried,
        inputs.contiguous(),
        None if weight is None else weight.contiguous(),
        bias,
        state,
        kept,
        neuron,
        keep,
        kernel,
        pipeline.Wanted(*wanted),
    )
    every = (found.potential, found.input, found.weight, found.bias, found.beta, found.threshold)
    return [one for one in every if one is not None]


@_lif_backward.register_fake
def _(
    cotangent: torch.Tensor,
    carried: torch.Tensor,
    inputs: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    potential: torch.Tensor,
    kept: torch.Tensor,
    *settings: Any,
) -> list[torch.Tensor]:
    wanted = pipeline.Wanted(*settings[-1])
    dtype = pipeline.state_dtype(inputs.dtype)
    found = [potential.new_empty(potential.shape, dtype=dtype)]
    if wanted.input:
        found.append(torch.empty_like(inputs, memory_format=torch.contiguous_format))
    if wanted.weight and weight is not None:
        found.append(torch.empty_like(weight, memory_format=torch.contiguous_format))
    if wanted.bias:
        found.append(inputs.new_empty(potential.shape[-1], dtype=dtype))
    return found + [inputs.new_empty((), dtype=dtype) for _ in range(2 * wanted.parameters)]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    given, weight, bias, potential, learned_beta, learned_threshold, *settings = inputs
    ctx.save_for_backward(given, weight, bias, potential, output[2], learned_beta, learned_threshold)
    ctx.settings = settings
    ctx.mark_non_differentiable(output[2])


def _differentiate(ctx: Any, cotangent: torch.Tensor | None, carried: torch.Tensor | None, _: Any) -> Any:
    given, weight, bias, potential, kept, learned_beta, learned_threshold = ctx.saved_tensors
    needed = ctx.needs_input_grad
    wanted = pipeline.Wanted(needed[0], needed[1], needed[2], needed[4] or needed[5])
    if cotangent is None:
        cotangent = given.new_zeros(given.shape[0], *potential.shape)
    if carried is None:
        carried = torch.zeros_like(potential)
    found = iter(
        _lif_backward(
            cotangent,
            carried,
            given,
            weight,
            bias,
            potential,
            kept,
            learned_beta,
            learned_threshold,
            *ctx.settings,
            [wanted.input, wanted.weight, wanted.bias, wanted.parameters],
        )
    )
    by_potential = next(found)
    by_input = next(found) if wanted.input else None
    by_weight = next(found) if wanted.weight else None
    by_bias = next(found) if wanted.bias else None
    by_beta, by_threshold = (next(found), next(found)) if wanted.parameters else (None, None)
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
    """With the values that are learned in place of the numbers that stand for them."""
    beta = beta if learned_beta is None else learned_beta.item()
    threshold = threshold if learned_threshold is None else learned_threshold.item()
    return Neuron(beta, threshold, reset, detach_reset, surrogate, slope)  # type: ignore[arg-type]


def _like(gradient: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    return gradient.to(parameter.dtype).reshape(parameter.shape)


_lif.register_autograd(_differentiate, setup_context=_remember)
