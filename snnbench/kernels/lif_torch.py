"""The LIF neuron in operations of torch alone: any device that torch has, no compiler, no further dependency.

Forward is a loop of four operations a step, without autograd. Backward first computes the surrogate's slopes in a
vectorised pass. The recurrence is then linear: gu[t] = a[t] + beta * d[t] * gu[t+1], one fused operation a step. Kept:
u - threshold. Forward moves about 40 bytes a neuron-step, backward 60, mostly in cache: on the CPU the pipeline passes
short stretches, so that temporary arrays stay in cache.

On 2 cores of an EPYC (Zen 4), B = 16, T = 500, float32: a training pass of the layer takes 1.43 (N = 512) and 1.08
(N = 2048) of its two bare products, by `benchmarks kernels`; the plain loop 2.5 and 1.25.
"""

import torch
from torch import Tensor

from snnbench.cases.surrogate import FORMULAS
from snnbench.kernels.neuron import Neuron
from snnbench.kernels.sums import NO_SUMS, Sums


def forward(
    current: Tensor, potential: Tensor, spikes: Tensor, saved: Tensor | None, neuron: Neuron, bias: Tensor | None = None
) -> None:
    """Run all steps of `current` [T, M]. Contract: kernels/__init__.py."""
    v, decayed = potential, torch.empty_like(potential)
    straight = None if saved is None or saved.dtype != v.dtype else saved  # potentials are computed where they are kept
    u = torch.empty_like(current, dtype=v.dtype) if straight is None else straight
    if u is not current:
        u.copy_(current)
    if bias is not None:
        u.add_(bias)
    for row, s in zip(u.unbind(0), spikes.unbind(0), strict=True):
        torch.mul(v, neuron.beta, out=decayed)
        row.add_(decayed)
        torch.ge(row, neuron.threshold, out=s)
        if neuron.reset == "zero":
            torch.addcmul(row, row, s, value=-1.0, out=v)
        else:
            torch.sub(row, s, alpha=neuron.threshold, out=v)
    if saved is not None:
        torch.sub(u, neuron.threshold, out=saved)


def backward(
    cotangent: Tensor, saved: Tensor, carried: Tensor, gradient: Tensor, neuron: Neuron, sums: Sums = NO_SUMS
) -> None:
    """Run all steps backwards. Contract: kernels/__init__.py."""
    if not len(cotangent):
        return
    distance = saved.to(carried.dtype)
    silent = torch.signbit(distance)
    slopes = FORMULAS[neuron.surrogate](distance, neuron.slope, neuron.threshold, torch)
    gu = cotangent * slopes
    through = _through_reset(neuron, distance, slopes)
    stays = silent.to(carried.dtype) if neuron.reset == "zero" else None
    factor = stays if through is None else (1.0 - through if stays is None else stays - through)
    later = carried.clone()
    steps = gu.unbind(0)
    factors = [None] * len(steps) if factor is None else factor.unbind(0)
    value = 1.0  # `later` is dL/dv for the last step, and dL/du of the following step for the others
    for step, by in zip(reversed(steps), reversed(factors), strict=True):
        step.add_(later, alpha=value) if by is None else step.addcmul_(by, later, value=value)
        later, value = step, neuron.beta
    if sums.threshold is not None:
        gv = torch.cat([neuron.beta * gu[1:], carried[None]])
        spiking = cotangent * slopes if through is None else cotangent * slopes - through * gv
        direct = 0.0 if neuron.reset == "zero" else gv.masked_fill(silent, 0.0)
        sums.threshold.sub_((spiking + direct).sum(0))
    if sums.beta is not None:
        fired = torch.zeros_like(distance) if neuron.reset == "zero" else distance
        after = torch.where(silent, distance + neuron.threshold, fired)
        sums.beta.add_(gu[0] * sums.start + (gu[1:] * after[:-1]).sum(0))
    if sums.bias is not None:
        sums.bias.add_(gu.sum(0))
    torch.mul(gu[0], neuron.beta, out=carried)
    gradient.copy_(gu)


def _through_reset(neuron: Neuron, distance: Tensor, slopes: Tensor) -> Tensor | None:
    """The share of dL/dv that the reset subtracts through the spike; None if the reset is detached."""
    if neuron.detach_reset:
        return None
    return slopes * (neuron.threshold if neuron.reset == "subtract" else distance + neuron.threshold)
