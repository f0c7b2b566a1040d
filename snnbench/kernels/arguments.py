"""The arguments of a layer: their checks, the choice of the kernel, and of the values to keep."""

from functools import lru_cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from snnbench.kernels import choice, stretches
from snnbench.kernels.neuron import Neuron, Reset
from snnbench.kernels.passes import DTYPES, KEEPS

Kind: TypeAlias = tuple[torch.Size, torch.dtype, torch.device]
"""Shape, format and device of a tensor."""


def chosen(kernel: str, device: torch.device, dtype: torch.dtype) -> str:
    """The kernel that will run. Raises Unsupported, Unavailable."""
    name = choice.automatic(device, dtype) if kernel == "auto" else kernel
    choice.require(name, device, dtype)
    return name


# torch.compiler.assume_constant_result sets this and imports torch's compiler, which takes a second.
chosen._dynamo_marked_constant = True  # type: ignore[attr-defined]


def kind(tensor: Tensor | None) -> Any:
    """What the checks look at; None without a tensor."""
    return None if tensor is None else (tensor.shape, tensor.dtype, tensor.device)


def arranged(
    inputs: Kind,
    weight: Kind | None,
    bias: Kind | None,
    potential: Kind | None,
    beta: float,
    threshold: float,
    reset: Reset,
    detach_reset: bool,
    surrogate: str,
    slope: float,
    keep: str,
    kernel: str,
) -> tuple[Neuron, str, str]:
    """The neuron, the values to keep and the kernel, for tensors of these kinds.

    Raises ValueError, Unsupported, Unavailable.
    """
    neuron = Neuron(beta, threshold, reset, detach_reset, surrogate, slope)
    check(inputs, weight, bias, potential, keep, kernel)
    name = chosen(kernel, inputs[2], inputs[1])
    return neuron, stretches.automatic_keep(name, weight is not None) if keep == "auto" else keep, name


known = lru_cache(maxsize=256)(arranged)
"""Checks take longer than the work of a small layer, and most calls are like one before."""


def check(inputs: Kind, weight: Kind | None, bias: Kind | None, potential: Kind | None, keep: str, kernel: str) -> None:
    """Raise ValueError for an unknown word, and for shapes, formats and devices that do not fit together."""
    shape, dtype, device = inputs
    if len(shape) != 3:
        raise ValueError(f"input has the shape {list(shape)}: expected [T, B, N]")
    if keep not in ("auto", *KEEPS):
        raise ValueError(f"keep {keep!r}: expected auto or one of {', '.join(KEEPS)}")
    if kernel not in ("auto", *choice.KERNELS):
        raise ValueError(f"kernel {kernel!r}: expected auto or one of {', '.join(choice.KERNELS)}")
    if weight is not None and (len(weight[0]) != 2 or weight[0][1] != shape[2]):
        raise ValueError(f"weight has the shape {list(weight[0])}: expected [N_out, {shape[2]}]")
    neurons = shape[2] if weight is None else weight[0][0]
    if bias is not None and bias[0] != (neurons,):
        raise ValueError(f"bias has the shape {list(bias[0])}: expected [{neurons}]")
    if potential is not None and potential[0] != (shape[1], neurons):
        raise ValueError(f"potential has the shape {list(potential[0])}: expected {[shape[1], neurons]}")
    if dtype not in DTYPES:
        raise ValueError(f"input in {dtype}: expected one of {', '.join(map(str, DTYPES))}")
    for name, kind in (("weight", weight), ("bias", bias), ("potential", potential)):
        if kind is not None and kind[2] != device:
            raise ValueError(f"{name} is on {kind[2]}, the input on {device}: expected one device")
    if weight is not None and weight[1] != dtype:
        raise ValueError(f"weight is in {weight[1]}, the input in {dtype}: expected one format")
