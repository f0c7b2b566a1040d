"""Neurons with a synaptic current and recurrent weights, on a CPU (recurrent_cpu.c): one C call each way.

    i[t] = alpha * i[t-1] + x[t] + R s[t-1];  u[t] = beta * v[t-1] + i[t];  spike and reset as in neuron.py

The gradient of R is one product over all steps, after the pass back through time.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from snnbench.adapter.refusal import Unsupported
from snnbench.kernels import buffers, compiler, formula
from snnbench.kernels.lif_cpu import BLOCK, FORMATS
from snnbench.kernels.neuron import Neuron, Reset

SOURCE = Path(__file__).with_suffix(".c")
DTYPES = (torch.float32, torch.float64)


def recurrent_lif(
    current: Tensor,
    recurrent: Tensor | None = None,
    *,
    alpha: float = 0.0,
    beta: float,
    threshold: float,
    reset: Reset = "subtract",
    detach_reset: bool = False,
    surrogate: str = "fast_sigmoid",
    slope: float = 1.0,
) -> Tensor:
    """Spikes [T, B, N] for currents [T, B, N] and recurrent weights [N, N]; None for neurons without recurrence.

    A synaptic current keeps the share `alpha` of itself per step; the other arguments are those of `lif`. Formats are
    float32 and float64, on the CPU. Only first derivatives are there. Raises ValueError, Unsupported, Unavailable.
    """
    neuron = Neuron(beta, threshold, reset, detach_reset, surrogate, slope)
    if current.ndim != 3:
        raise ValueError(f"the current has the shape {list(current.shape)}: expected [T, B, N]")
    if recurrent is not None and recurrent.shape != (current.shape[2],) * 2:
        raise ValueError(f"recurrent weights have the shape {list(recurrent.shape)}: expected [N, N] of the current")
    if current.dtype not in DTYPES or current.device.type != "cpu":
        raise Unsupported(f"recurrent_lif has float32 and float64 on a CPU (asked: {current.dtype}, {current.device})")
    spikes: Tensor = _Layer.apply(current, recurrent, alpha, neuron)
    return spikes


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, current: Tensor, recurrent: Tensor | None, alpha: float, neuron: Neuron) -> Tensor:
        current, shape = current.contiguous(), tuple(current.shape)
        spikes, kept = (buffers.empty(shape, current.dtype, current.device) for _ in range(2))
        across, state = None if recurrent is None else recurrent.T.contiguous(), current.new_zeros(2, *shape[1:])
        _library(neuron, current.dtype).forward(
            *_addresses(current, across, spikes, kept, *state),
            *(*shape, alpha, neuron.beta, neuron.threshold, _threads(shape[1])),
        )
        ctx.save_for_backward(recurrent, spikes)
        ctx.kept, ctx.alpha, ctx.neuron = kept, alpha, neuron
        return spikes

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        (recurrent, spikes), kept, neuron = ctx.saved_tensors, ctx.kept, ctx.neuron
        gradient = buffers.empty(tuple(kept.shape), kept.dtype, kept.device)
        own, state = None if recurrent is None else recurrent.contiguous(), kept.new_zeros(3, *kept.shape[1:])
        cotangent = cotangent.contiguous()
        _library(neuron, kept.dtype).backward(
            *_addresses(cotangent, kept, own, gradient, *state),
            *(*kept.shape, ctx.alpha, neuron.beta, neuron.threshold, neuron.slope, _threads(kept.shape[1])),
        )
        by_own = None if own is None else gradient[1:].flatten(0, 1).T @ spikes[:-1].flatten(0, 1)
        return gradient, by_own, None, None


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
