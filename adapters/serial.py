# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.snnbench]
# api = 2
# modules = ["kernels"]
# cuda = ["cuda-core[cu13]==1.2.2"]
# ///
"""Serial: one time step after the other, the two baselines of the temporal fusion paper (Li et al. 2024).

"Serial (PyTorch)" computes each step with plain operations, and autograd differentiates them. "Serial (CUDA)" computes
each step with one launch of a kernel: here one launch, or one C call, of snnbench's own kernel for each step forward,
and one backward.
"""

import torch

from snnbench import kernels
from snnbench.adapter import require
from snnbench.backends.torch import Neuron
from snnbench.cases.surrogate import FORMULAS
from snnbench.kernels.choice import module

BACKEND = "torch"
VARIANTS = {
    "torch": "a step of plain PyTorch operations at a time",
    "kernel": "one launch of a kernel, or one C call, for each step",
}
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached")


def neuron(case, variant):
    if variant == "torch":
        return Neuron(lambda neurons: plain(case))
    require(case, "the kernel's steps hand a state in float32 on", dtype=("float32", "float64"))
    kernel = kernels.automatic(torch.device(case.device), getattr(torch, case.dtype))
    return Neuron(lambda neurons: stepwise(case, module(kernel)), provider=f"snnbench:{kernel}")


def plain(case):
    slope_of = FORMULAS[case.surrogate]

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, distance):
            ctx.save_for_backward(distance)
            return (distance >= 0).to(distance.dtype)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * slope_of(*ctx.saved_tensors, case.slope, case.threshold, torch)

    def layer(current):
        v, spikes = torch.zeros_like(current[0]), []
        for x in current.unbind(0):
            u = case.beta * v + x
            s = Spike.apply(u - case.threshold)
            reset_spike = s.detach() if case.detach_reset else s
            v = u - case.threshold * reset_spike if case.reset == "subtract" else u * (1 - reset_spike)
            spikes.append(s)
        return torch.stack(spikes)

    return layer


def stepwise(case, kernel):
    names = ("beta", "threshold", "reset", "detach_reset", "surrogate", "slope")
    numbers = kernels.Neuron(**{name: getattr(case, name) for name in names})

    class Steps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, current, keeps_potentials):
            flat = current.contiguous().flatten(1)
            spikes, potential = torch.empty_like(flat), torch.zeros_like(flat[0])
            saved = torch.empty_like(flat) if keeps_potentials else None
            for t in range(len(flat)):
                now = slice(t, t + 1)
                kernel.forward(flat[now], potential, spikes[now], saved[now] if keeps_potentials else None, numbers)
            ctx.saved = saved
            return spikes.view(current.shape)

        @staticmethod
        def backward(ctx, cotangent):
            flat, saved = cotangent.contiguous().flatten(1), ctx.saved
            gradient, carried = torch.empty_like(flat), torch.zeros_like(flat[0])
            for t in reversed(range(len(flat))):
                now = slice(t, t + 1)
                kernel.backward(flat[now], saved[now], carried, gradient[now], numbers)
            return gradient.view(cotangent.shape), None

    return lambda current: Steps.apply(current, torch.is_grad_enabled() and current.requires_grad)
