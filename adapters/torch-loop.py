# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""Plain PyTorch: a three-line neuron in a Python loop over time, as a user writes it without a library.

Docs: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

import torch

from snnbench.adapter import Unsupported
from snnbench.backends.torch import Neuron

BACKEND = "torch"
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached", "none")
WAYS = ("compile", "cuda-graph", "amp")
VARIANTS = {
    "unbind": "the current is unbound along time before the loop",
    "index": "the loop indexes current[t], so the backward pass is quadratic in T",
}


class Spike(torch.autograd.Function):
    """A step with the fast sigmoid's derivative."""

    @staticmethod
    def forward(ctx, distance, slope):
        ctx.save_for_backward(distance)
        ctx.slope = slope
        return (distance >= 0).to(distance.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (distance,) = ctx.saved_tensors
        return gradient / (1 + ctx.slope * distance.abs()) ** 2, None


def neuron(case, variant):
    if case.surrogate != "fast_sigmoid":
        raise Unsupported(f"this adapter has the fast sigmoid only, not the surrogate {case.surrogate}")

    def layer(current):
        v, spikes = torch.zeros_like(current[0]), []
        for t, x in enumerate(current.unbind(0) if variant == "unbind" else range(len(current))):
            u = case.beta * v + (x if variant == "unbind" else current[t])
            s = Spike.apply(u - case.threshold, case.slope)
            spikes.append(s)
            if case.reset == "none":
                v = u
                continue
            reset_spike = s.detach() if case.detach_reset else s
            v = u - case.threshold * reset_spike if case.reset == "subtract" else u * (1 - reset_spike)
        return torch.stack(spikes)

    return Neuron(lambda neurons: layer)
