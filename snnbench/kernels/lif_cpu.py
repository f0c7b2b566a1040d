"""The C kernel of lif_cpu.c, called through ctypes on torch's CPU tensors with torch's number of threads.

The machine's C compiler compiles it at first use (about a second for each kind of neuron and number format). It is kept
on disk, and the next process loads it in a millisecond. torch and the kernel share one OpenMP pool.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from snnbench.kernels import compiler
from snnbench.kernels.formula import C, surrogate
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.passes import state_dtype
from snnbench.kernels.sums import NO_SUMS, Sums

SOURCE = Path(__file__).with_suffix(".c")
BLOCK = SOURCE.with_name("lif_block.h")
"""A block of neurons, which linear_cpu.c includes, too."""
STRETCH = 32
"""Time steps that `backward_alone` computes again at a time."""
FORMATS = {torch.float32: "FLOAT32", torch.float64: "FLOAT64", torch.bfloat16: "BFLOAT16", torch.float16: "FLOAT16"}


def forward(
    current: Tensor, potential: Tensor, spikes: Tensor, saved: Tensor | None, neuron: Neuron, bias: Tensor | None = None
) -> None:
    """Run all steps of `current` [T, M]: write `spikes` and `saved` [T, M]. Contract: kernels/__init__.py."""
    library = _library(neuron, current.dtype, current.dtype if saved is None else saved.dtype)
    library.forward(
        *map(_pointer, (current, potential, spikes, saved, bias)),
        *current.shape,
        *(neuron.beta, neuron.threshold),
        torch.get_num_threads(),
    )


def backward(
    cotangent: Tensor, saved: Tensor, carried: Tensor, gradient: Tensor, neuron: Neuron, sums: Sums = NO_SUMS
) -> None:
    """Run all steps backwards: write `gradient` [T, M], add to the sums [M]. Contract: kernels/__init__.py."""
    library = _library(neuron, cotangent.dtype, saved.dtype)
    library.backward(
        *map(_pointer, (cotangent, saved, carried, gradient, sums.start, *sums[:3])),
        *cotangent.shape,
        *(neuron.beta, neuron.threshold, neuron.slope),
        torch.get_num_threads(),
    )


def forward_alone(
    current: Tensor,
    potential: Tensor | None,
    spikes: Tensor,
    states: Tensor | None,
    last: Tensor | None,
    neuron: Neuron,
    bias: Tensor | None = None,
) -> None:
    """Run all steps of `current` [T, M] without keeping them. Contract: kernels/alone.py."""
    library = _library(neuron, current.dtype, state_dtype(current.dtype))
    row = _row(current, spikes)
    library.forward_alone(
        *(current.data_ptr(), _pointer(potential), spikes.data_ptr()),
        *map(_pointer, (states, last, bias)),
        *(*current.shape, row),
        *(neuron.beta, neuron.threshold),
        torch.get_num_threads(),
    )


def backward_alone(
    current: Tensor,
    cotangent: Tensor,
    potential: Tensor | None,
    states: Tensor,
    carried: Tensor | None,
    gradient: Tensor,
    first: Tensor | None,
    neuron: Neuron,
    bias: Tensor | None = None,
    sums: Sums = NO_SUMS,
) -> None:
    """Run all steps backwards, from `states` that `forward_alone` wrote. Contract: kernels/alone.py."""
    library = _library(neuron, current.dtype, state_dtype(current.dtype))
    row = _row(current, cotangent, gradient)
    library.backward_alone(
        *(current.data_ptr(), cotangent.data_ptr()),
        *map(_pointer, (potential, states, carried)),
        gradient.data_ptr(),
        *map(_pointer, (first, bias, *sums[:3])),
        *(*current.shape, row),
        *(neuron.beta, neuron.threshold, neuron.slope),
        torch.get_num_threads(),
    )


def ready() -> None:
    """Raise Unavailable if the kernel cannot be compiled or loaded on this machine."""
    _loaded("subtract", False, "fast_sigmoid", "FLOAT32", "FLOAT32")


def _library(neuron: Neuron, store: torch.dtype, keep: torch.dtype) -> Any:
    return _loaded(neuron.reset, neuron.detach_reset, neuron.surrogate, FORMATS[store], FORMATS[keep])


@cache
def _loaded(reset: str, detach: bool, name: str, store: str, keep: str) -> Any:
    macros = {
        "STORE": store,
        "KEEP": keep,
        "RESET_ZERO": str(int(reset == "zero")),
        "DETACH": str(int(detach)),
        "SURROGATE": surrogate(name, C),
        "STRETCH": str(STRETCH),
    }
    library = compiler.library(SOURCE, macros, BLOCK)
    pointer, size, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
    library.forward.argtypes = [*[pointer] * 5, size, size, number, number, ctypes.c_int]
    library.backward.argtypes = [*[pointer] * 8, size, size, number, number, number, ctypes.c_int]
    library.forward.restype = library.backward.restype = None
    if hasattr(library, "forward_alone"):
        library.forward_alone.argtypes = [*[pointer] * 6, *[size] * 3, number, number, ctypes.c_int]
        library.backward_alone.argtypes = [*[pointer] * 11, *[size] * 3, *[number] * 3, ctypes.c_int]
        library.forward_alone.restype = library.backward_alone.restype = None
    return library


def _row(*matrices: Tensor) -> int:
    """The numbers from one row to the next, the same in all `matrices` [T, M]. Raises ValueError if they differ."""
    steps, columns = matrices[0].shape
    rows = {matrix.stride(0) for matrix in matrices} if steps > 1 else {columns}
    if len(rows) > 1 or (columns > 1 and any(matrix.stride(1) != 1 for matrix in matrices)):
        strides = " and ".join(str(matrix.stride()) for matrix in matrices)
        raise ValueError(
            f"strides {strides} of {steps} x {columns} numbers: expected rows of neighbours, equally far apart"
        )
    return int(rows.pop())


def _pointer(tensor: Tensor | None) -> int | None:
    """The address of a contiguous tensor's numbers. Raises ValueError if it is not contiguous."""
    if tensor is not None and not tensor.is_contiguous():
        raise ValueError(f"a tensor of shape {list(tensor.shape)} and strides {tensor.stride()} is not contiguous")
    return None if tensor is None else tensor.data_ptr()
