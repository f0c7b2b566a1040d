"""Neurons with a synaptic current and recurrent weights, on a CPU (recurrent_cpu.c): one C call each way."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from snnbench.kernels import buffers, compiler, formula
from snnbench.kernels.lif_cpu import BLOCK, FORMATS
from snnbench.kernels.neuron import Neuron

SOURCE = Path(__file__).with_suffix(".c")


def forward(
    current: Tensor, recurrent: Tensor | None, alpha: float, neuron: Neuron, kernel: str
) -> tuple[Tensor, Tensor]:
    """Spikes [T, B, N] and what is kept [T, B, N], for currents [T, B, N] and weights [N, N]."""
    shape = tuple(current.shape)
    spikes, kept = (buffers.empty(shape, current.dtype, current.device) for _ in range(2))
    across, state = None if recurrent is None else recurrent.T.contiguous(), current.new_zeros(2, *shape[1:])
    _library(neuron, current.dtype).forward(
        *_addresses(current, across, spikes, kept, *state),
        *(*shape, alpha, neuron.beta, neuron.threshold, _threads(shape[1])),
    )
    return spikes, kept


def backward(
    cotangent: Tensor, kept: Tensor, recurrent: Tensor | None, alpha: float, neuron: Neuron, kernel: str
) -> Tensor:
    """dL/d(current) [T, B, N] for dL/d(spikes) [T, B, N]."""
    gradient = buffers.empty(tuple(kept.shape), kept.dtype, kept.device)
    own, state = None if recurrent is None else recurrent.contiguous(), kept.new_zeros(3, *kept.shape[1:])
    _library(neuron, kept.dtype).backward(
        *_addresses(cotangent, kept, own, gradient, *state),
        *(*kept.shape, alpha, neuron.beta, neuron.threshold, neuron.slope, _threads(kept.shape[1])),
    )
    return gradient


def _threads(samples: int) -> int:
    return int(min(torch.get_num_threads(), samples))


def _addresses(*tensors: Tensor | None) -> list[int | None]:
    return [None if each is None else each.data_ptr() for each in tensors]


def _library(neuron: Neuron, dtype: torch.dtype) -> Any:
    return _loaded(neuron.reset, neuron.detach_reset, neuron.surrogate, FORMATS[dtype])


@cache
def _loaded(reset: str, detach: bool, name: str, store: str) -> Any:
    macros = {
        "STORE": store,
        "KEEP": store,
        "RESET_ZERO": str(int(reset == "zero")),
        "DETACH": str(int(detach)),
        "SURROGATE": formula.surrogate(name, formula.C),
    }
    library = compiler.library(SOURCE, macros, BLOCK)
    pointer, size, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
    library.forward.argtypes = [*[pointer] * 6, *[size] * 3, *[number] * 3, size]
    library.backward.argtypes = [*[pointer] * 7, *[size] * 3, *[number] * 4, size]
    library.forward.restype = library.backward.restype = None
    return library
