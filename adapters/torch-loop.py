# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""Plain PyTorch: a three-line neuron in a Python loop over time, as a user writes it without a library.

Docs: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

import torch

from snnbench.backends.torch import Neuron, trained
from snnbench.cases.surrogate import FORMULAS

BACKEND = "torch"
OWN_DECAYS = True
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached", "none")
SYNAPTIC = ("subtract", "zero", "subtract-detached", "zero-attached", "none")
RECURRENT = ("subtract", "zero", "subtract-detached", "zero-attached", "none")
TRAINED = ("beta", "threshold")
CHUNKS = True
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


def shaped(case, threshold):
    """A step with the derivative of another surrogate, for a threshold that is a number."""

    class Shaped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, distance, slope):
            ctx.save_for_backward(distance)
            return (distance >= 0).to(distance.dtype)

        @staticmethod
        def backward(ctx, gradient):
            (distance,) = ctx.saved_tensors
            return gradient * FORMULAS[case.surrogate](distance, case.slope, threshold, torch), None

    return Shaped.apply


def neuron(case, variant, threshold=None):
    if case.trained_constants:
        return training(case, variant)
    spike = Spike.apply if case.surrogate == "fast_sigmoid" else shaped(case, threshold or case.threshold)

    def layer(current, own=None, carried=None):
        v = s = torch.zeros_like(current[0])
        if case.chunk_steps and carried is not None:
            v = carried
        spikes = []
        if case.alpha:
            i = torch.zeros_like(v)
        for t, x in enumerate(current.unbind(0) if variant == "unbind" else range(len(current))):
            x = x if variant == "unbind" else current[t]
            if case.is_recurrent and own:
                x = x + own(s)
            if case.alpha:
                i = case.alpha * i + x
            u = case.beta * v + (i if case.alpha else x)
            s = spike(u - case.threshold, case.slope)
            spikes.append(s)
            if case.reset == "none":
                v = u
                continue
            reset_spike = s.detach() if case.detach_reset else s
            v = u - case.threshold * reset_spike if case.reset == "subtract" else u * (1 - reset_spike)
        if case.chunk_steps:
            return (torch.stack(spikes), v)
        return torch.stack(spikes)

    def recurrent(own):
        return lambda current: layer(current, own)

    return Neuron(lambda neurons: layer, recurrent=recurrent, chunk=lambda layer, current, v: layer(current, carried=v))


def training(case, variant):
    """The same neuron, with constants of its own in each layer."""

    def layer(neurons, own=None):
        constants = trained(case, neurons)
        made = neuron(case.with_(trained="none", **constants), variant, case.threshold)
        run = made.recurrent(own) if own else made.layer(neurons)
        run.constants = constants
        return run

    return Neuron(layer, recurrent=lambda own: layer(own.in_features, own), constants=lambda run: run.constants)
