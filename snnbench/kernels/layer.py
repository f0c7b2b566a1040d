"""`lif` and `linear_lif`, the functions for users: their arguments, and the checks of these."""

from dataclasses import replace
from typing import Literal, Required, TypeAlias, TypedDict, Unpack, overload

import torch
from torch import Tensor

from snnbench.kernels import choice, eager, pipeline
from snnbench.kernels.neuron import Neuron, Reset
from snnbench.kernels.operator import operator
from snnbench.kernels.passes import DTYPES, KEEPS, prepared, state_dtype

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
    long sequence can run in pieces. `keep` selects the values kept for the backward pass (kernels/pipeline.py), and
    `kernel` the kernel: "auto" is the fastest whose gradients are exact, or `snnbench.kernels.automatic`. Formats are
    float32, float64, bfloat16 and float16, the last two with a state in float32. Each call waits for a learned tensor
    on a GPU, so no CUDA graph can capture it. Only reverse mode is supported: torch.func.jvp and forward-mode
    differentiation see no derivative. Raises ValueError for an invalid word or shape, Unsupported for a device or
    format that the kernel does not support, Unavailable if this machine lacks a requirement of the kernel.
    """
    neuron = Neuron(_value(beta), _value(threshold), reset, detach_reset, surrogate, slope)
    check(inputs, weight, bias, potential, keep, kernel)
    name = chosen(kernel, inputs.device, inputs.dtype)
    keep = pipeline.automatic_keep(name, weight is not None) if keep == "auto" else keep
    tensors = (inputs, weight, bias, potential, _learned("beta", beta), _learned("threshold", threshold))
    differentiated = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    if eager.serves(*tensors):
        neuron = _read(neuron, beta, threshold)
        if differentiated:
            return eager.Function.apply(*tensors, neuron, keep, name, return_potential)
        spikes, last, _ = pipeline.forward(prepared(*tensors[:4], neuron, "", name, return_potential))
        return (spikes, last) if return_potential else spikes
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
        keep if differentiated else "",
        name,
    )
    return (spikes, last) if return_potential else spikes


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


def chosen(kernel: str, device: torch.device, dtype: torch.dtype) -> str:
    """The kernel that will run. Raises Unsupported, Unavailable."""
    name = choice.automatic(device, dtype) if kernel == "auto" else kernel
    choice.require(name, device, dtype)
    return name


# torch.compiler.assume_constant_result sets this and imports torch's compiler, which takes a second.
chosen._dynamo_marked_constant = True  # type: ignore[attr-defined]


def check(
    inputs: Tensor, weight: Tensor | None, bias: Tensor | None, potential: Tensor | None, keep: str, kernel: str
) -> None:
    """Raise ValueError for an unknown word, and for shapes, formats and devices that do not fit together."""
    if inputs.ndim != 3:
        raise ValueError(f"input has the shape {list(inputs.shape)}: expected [T, B, N]")
    if keep not in ("auto", *KEEPS):
        raise ValueError(f"keep {keep!r}: expected auto or one of {', '.join(KEEPS)}")
    if kernel not in ("auto", *choice.KERNELS):
        raise ValueError(f"kernel {kernel!r}: expected auto or one of {', '.join(choice.KERNELS)}")
    if weight is not None and (weight.ndim != 2 or weight.shape[1] != inputs.shape[2]):
        raise ValueError(f"weight has the shape {list(weight.shape)}: expected [N_out, {inputs.shape[2]}]")
    neurons = inputs.shape[2] if weight is None else weight.shape[0]
    if bias is not None and bias.shape != (neurons,):
        raise ValueError(f"bias has the shape {list(bias.shape)}: expected [{neurons}]")
    if potential is not None and potential.shape != (inputs.shape[1], neurons):
        raise ValueError(f"potential has the shape {list(potential.shape)}: expected {[inputs.shape[1], neurons]}")
    if inputs.dtype not in DTYPES:
        raise ValueError(f"input in {inputs.dtype}: expected one of {', '.join(map(str, DTYPES))}")
    for name, tensor in (("weight", weight), ("bias", bias), ("potential", potential)):
        if tensor is not None and tensor.device != inputs.device:
            raise ValueError(f"{name} is on {tensor.device}, the input on {inputs.device}: expected one device")
    if weight is not None and weight.dtype != inputs.dtype:
        raise ValueError(f"weight is in {weight.dtype}, the input in {inputs.dtype}: expected one format")
