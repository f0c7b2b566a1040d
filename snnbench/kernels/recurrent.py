"""`recurrent_lif`, the function for users: neurons with a synaptic current and recurrent weights.

    i[t] = alpha * i[t-1] + x[t] + R s[t-1];  u[t] = beta * v[t-1] + i[t];  spike and reset as in neuron.py

recurrent_cpu.py runs all steps in one C call each way. Elsewhere recurrent_steps.py has a product and a kernel for each
step, or, without recurrent weights, one kernel for all of them. The gradient of R is one product over all steps, after
the pass back through time.
"""

from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from snnbench.adapter.refusal import Unsupported
from snnbench.kernels import recurrent_cpu, recurrent_steps
from snnbench.kernels.arguments import chosen
from snnbench.kernels.neuron import Neuron, Reset

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
    kernel: str = "auto",
) -> Tensor:
    """Spikes [T, B, N] for currents [T, B, N] and recurrent weights [N, N]; None for neurons without recurrence.

    A synaptic current keeps the share `alpha` of itself per step; the other arguments are those of `lif`. Formats are
    float32 and float64. Only first derivatives are there. Raises ValueError, Unsupported, Unavailable.
    """
    neuron = Neuron(beta, threshold, reset, detach_reset, surrogate, slope)
    if current.ndim != 3:
        raise ValueError(f"the current has the shape {list(current.shape)}: expected [T, B, N]")
    if recurrent is not None and recurrent.shape != (current.shape[2],) * 2:
        raise ValueError(f"recurrent weights have the shape {list(recurrent.shape)}: expected [N, N] of the current")
    if current.dtype not in DTYPES:
        raise Unsupported(f"recurrent_lif has float32 and float64 (asked: {current.dtype})")
    spikes: Tensor = _Layer.apply(current, recurrent, alpha, neuron, chosen(kernel, current.device, current.dtype))
    return spikes


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, current: Tensor, recurrent: Tensor | None, alpha: float, neuron: Neuron, kernel: str
    ) -> Tensor:
        spikes, kept = _passes(kernel).forward(current.contiguous(), recurrent, alpha, neuron, kernel)
        ctx.save_for_backward(recurrent, spikes)
        ctx.kept, ctx.settings = kept, (alpha, neuron, kernel)
        return spikes

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        (recurrent, spikes), (alpha, neuron, kernel) = ctx.saved_tensors, ctx.settings
        gradient = _passes(kernel).backward(cotangent.contiguous(), ctx.kept, recurrent, alpha, neuron, kernel)
        by_own = None if recurrent is None else gradient[1:].flatten(0, 1).T @ spikes[:-1].flatten(0, 1)
        return gradient, by_own, None, None, None


def _passes(kernel: str) -> ModuleType:
    return recurrent_cpu if kernel == "cpu" else recurrent_steps
