"""`lif` and `linear_lif`, the functions for users: their arguments, and the checks of these."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Required, TypeAlias, TypedDict, Unpack, overload

import torch
from torch import Tensor

from snnbench.adapter.refusal import Unsupported
from snnbench.kernels import eager, linear_cpu, pipeline
from snnbench.kernels.arguments import arranged, kind, known
from snnbench.kernels.neuron import Neuron, Reset
from snnbench.kernels.operator import operator
from snnbench.kernels.passes import prepared, state_dtype

_functorch = torch._C._functorch


def refuse_derivatives(*tensors: Tensor | None) -> None:
    """Raise Unsupported if a transform would differentiate the layer, or hides from it that a tensor has a gradient."""
    for tensor in tensors:
        while tensor is not None and _functorch.is_functorch_wrapped_tensor(tensor):
            inner = _functorch.get_unwrapped(tensor)
            if _functorch.is_gradtrackingtensor(tensor) or (torch.is_grad_enabled() and inner.requires_grad):
                raise Unsupported(
                    "lif and linear_lif have no derivatives inside of torch.vmap and torch.func.grad: loop over the "
                    "slices, and take gradients with torch.autograd.grad"
                )
            tensor = inner


Number: TypeAlias = "float | Tensor"


class Settings(TypedDict, total=False):
    """The keyword arguments of `lif` and `linear_lif`, but for `return_potential`, which decides the result's type.

    The signature of `linear_lif` has their defaults.
    """

    beta: Required[Number]
    threshold: Required[Number]
    reset: Reset
    detach_reset: bool
    surrogate: str
    slope: float
    potential: Tensor | None
    keep: str
    kernel: str


@overload
def lif(current: Tensor, *, return_potential: Literal[False] = ..., **settings: Unpack[Settings]) -> Tensor: ...


@overload
def lif(current: Tensor, *, return_potential: Literal[True], **settings: Unpack[Settings]) -> tuple[Tensor, Tensor]: ...


@overload
def lif(current: Tensor, *, return_potential: bool, **settings: Unpack[Settings]) -> Tensor | tuple[Tensor, Tensor]: ...


def lif(
    current: Tensor, *, return_potential: bool = False, **settings: Unpack[Settings]
) -> Tensor | tuple[Tensor, Tensor]:
    """Spikes [T, B, N] of leaky integrate-and-fire neurons for `current` [T, B, N]; equations in kernels/neuron.py.

    `linear_lif` describes the keyword arguments and has their defaults: `beta`, `threshold`, `reset`, `detach_reset`,
    `surrogate`, `slope`, `potential` [B, N], `keep`, `kernel`; `beta` and `threshold` have none. With
    `return_potential` the result is (spikes, potential [B, N] after the last step). Raises ValueError, Unsupported and
    Unavailable as `linear_lif` does; a TypeError for a missing or unknown keyword argument names the argument.
    """
    return linear_lif(current, None, None, return_potential=return_potential, **settings)


@overload
def linear_lif(
    inputs: Tensor,
    weight: Tensor | None,
    bias: Tensor | None = ...,
    *,
    return_potential: Literal[False] = ...,
    **settings: Unpack[Settings],
) -> Tensor: ...


@overload
def linear_lif(
    inputs: Tensor,
    weight: Tensor | None,
    bias: Tensor | None = ...,
    *,
    return_potential: Literal[True],
    **settings: Unpack[Settings],
) -> tuple[Tensor, Tensor]: ...


@overload
def linear_lif(
    inputs: Tensor,
    weight: Tensor | None,
    bias: Tensor | None = ...,
    *,
    return_potential: bool,
    **settings: Unpack[Settings],
) -> Tensor | tuple[Tensor, Tensor]: ...


def linear_lif(
    inputs: Tensor,
    weight: Tensor | None,
    bias: Tensor | None = None,
    *,
    beta: Number,
    threshold: Number,
    reset: Reset = "subtract",
    detach_reset: bool = False,
    surrogate: str = "fast_sigmoid",
    slope: float = 1.0,
    potential: Tensor | None = None,
    return_potential: bool = False,
    keep: str = "auto",
    kernel: str = "auto",
) -> Tensor | tuple[Tensor, Tensor]:
    """Spikes [T, B, N_out] of `lif` over `inputs` [T, B, N_in] @ weight [N_out, N_in].T + bias [N_out].

    The product is the framework's own; the bias and the neuron are fused after it. Without a weight the inputs are the
    currents.

    `beta` and `threshold` are numbers, or tensors of one element to learn. `potential` [B, N_out] is the initial
    potential, 0 if left out; with `return_potential` the result is (spikes, potential after the last step), so that a
    long sequence can run in pieces. `keep` selects the values kept for the backward pass (kernels/stretches.py), and
    `kernel` the kernel: "auto" is the fastest with exact gradients for dense inputs, or `snnbench.kernels.automatic`,
    and "event" is for inputs that are mostly 0, on a CPU. Formats are float32, float64, bfloat16 and float16, the last
    two with a state in float32. Each call waits for a learned tensor on a GPU, so no CUDA graph can capture it. Only
    reverse mode is supported: torch.func.jvp and forward-mode differentiation see no derivative, or raise RuntimeError.
    torch.vmap maps a call without gradients, one slice after the other. Raises ValueError for an invalid word or shape,
    Unsupported for a device or format that the kernel does not support and for a derivative inside of torch.vmap or
    torch.func.grad, Unavailable if this machine lacks a requirement of the kernel.
    """
    tensors = (inputs, weight, bias, potential, _learned("beta", beta), _learned("threshold", threshold))
    numbers = _value(beta), _value(threshold), reset, detach_reset, surrogate, slope
    is_eager = eager.serves(*tensors)
    arrange = known if is_eager else arranged
    neuron, keep, name = arrange(kind(inputs), kind(weight), kind(bias), kind(potential), *numbers, keep, kernel)
    if is_eager:
        neuron = _read(neuron, beta, threshold)
        if plans := linear_cpu.plans(inputs, weight, neuron, keep, name):
            both = linear_cpu.apply(tensors, neuron, plans)
            return both if return_potential else both[0]
        if _are_differentiated(tensors):
            return eager.Function.apply(*tensors, neuron, keep, name, return_potential)
        spikes, last, _ = pipeline.forward(prepared(*tensors[:4], neuron, "", name, return_potential))
        return (spikes, last) if return_potential else spikes
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        refuse_derivatives(*tensors)
    if potential is None:
        neurons = inputs.shape[2] if weight is None else weight.shape[0]
        potential = inputs.new_zeros(inputs.shape[1], neurons, dtype=state_dtype(inputs.dtype))
    spikes, last, _ = operator(
        *tensors[:3],
        potential,
        *tensors[4:],
        neuron.beta,
        neuron.threshold,
        reset,
        detach_reset,
        surrogate,
        slope,
        keep if _are_differentiated(tensors) else "",
        name,
    )
    return (spikes, last) if return_potential else spikes


def _are_differentiated(tensors: Sequence[Tensor | None]) -> bool:
    """Whether a backward pass may follow."""
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


def _value(number: Number) -> float:
    """The value of a number, 1.0 for a tensor: only the operator reads tensors, so that a compiler need not wait."""
    return 1.0 if isinstance(number, Tensor) else float(number)


def _read(neuron: Neuron, beta: Number, threshold: Number) -> Neuron:
    """The neuron with the values of learned tensors."""
    if isinstance(beta, Tensor):
        neuron = replace(neuron, beta=beta.item())
    if isinstance(threshold, Tensor):
        neuron = replace(neuron, threshold=threshold.item())
    return neuron


def _learned(name: str, number: Number) -> Tensor | None:
    """The tensor of a learned value; None for a number. Raises ValueError."""
    if not isinstance(number, Tensor):
        return None
    if number.numel() != 1:
        raise ValueError(f"{name} has {number.numel()} elements: expected one, for all neurons")
    return number
