# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""Plain PyTorch with torch.compile: a three-line neuron, compiled in the two ways that torch has for a loop.

Docs: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
"""

import torch
import torch._dynamo
from torch._higher_order_ops.scan import scan

from snnbench.backends.torch import Network, Neuron, compiled
from snnbench.cases.surrogate import FORMULAS

BACKEND = "torch"
OWN_DECAYS = True
COMPILES = True
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached")
VARIANTS = {
    "scan": "torch's scan operator over time, compiled with the linear layer as one graph",
    "step": "a compiled step, called by a Python loop over time",
}


def layer_of(case, variant):
    torch._dynamo.config.capture_scalar_outputs = True  # the compiler sees the scan's counter as a scalar output

    def step(v, x):
        u = case.beta * v + x
        distance = u - case.threshold
        if case.surrogate == "fast_sigmoid":
            slope = (1 / (1 + case.slope * distance.abs()) ** 2).detach()
        else:
            slope = FORMULAS[case.surrogate](distance.detach(), case.slope, case.threshold, torch)
        # Exactly 0 or 1, with the surrogate's derivative. On a GPU the compiler computes a * b - c in one rounding, so
        # the difference of two equal products is not 0. The difference of two equal sums is.
        s = slope * (distance - distance.detach()) + (distance >= 0).to(x.dtype)
        reset_spike = s.detach() if case.detach_reset else s
        v = u - case.threshold * reset_spike if case.reset == "subtract" else u * (1 - reset_spike)
        return v, s.clone()  # scan requires outputs that do not share memory

    one_step = compiled(step) if variant == "step" else step

    def layer(current):
        v = torch.zeros_like(current[0])
        if variant == "scan":
            return scan(step, v, current)[1]
        spikes = []
        for x in current.unbind(0):
            v, s = one_step(v, x)
            spikes.append(s)
        return torch.stack(spikes)

    return layer


def neuron(case, variant):
    layer = layer_of(case, variant)
    return Neuron(lambda neurons: layer if variant == "step" else compiled(layer))


def build(case, weights, variant):
    layer = layer_of(case, variant)
    network = Neuron(lambda neurons: layer).stack(weights)
    return network if variant == "step" else Network(compiled(network.forward), network.linears)
