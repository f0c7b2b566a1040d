# /// script
# requires-python = ">=3.11"
# dependencies = ["braincog==0.2.7.19", "torch==2.13.0", "numpy==2.4.6", "einops==0.8.2"]
#
# [[tool.uv.dependency-metadata]]
# name = "braincog"
# version = "0.2.7.19"
# requires-dist = []
#
# [tool.snnbench]
# api = 2
# ///
"""BrainCog: `LIFNode` behind linear layers, run layer by layer or step by step.

LIFNode divides its current by tau, so the weights are multiplied by tau. The surrogate gradient is an argument.
Docs: http://www.brain-cog.network/docs/
"""

import importlib
import sys
from importlib.util import find_spec, module_from_spec

import torch

from snnbench.adapter import Rule, Unsupported, require
from snnbench.backends.torch import Neuron, SteppedNeuron
from snnbench.cases.surrogate import FORMULAS

# Import the neurons without the __init__ of braincog.base. The __init__ imports simulators of brain areas and what they
# plot with, and neurons need none of them.
sys.modules["braincog.base"] = module_from_spec(find_spec("braincog.base"))
LIFNode = importlib.import_module("braincog.base.node.node").LIFNode

BACKEND = "torch"
VARIANTS = {
    "layer-by-layer": "LIFNode(layer_by_layer=True, step=T) on all time steps of the linear layer's output",
    "step": "all layers inside the loop over time",
    "defaults": "LIFNode() inside the loop over time, all other arguments at their defaults",
}
EXACT = {"layer-by-layer": ("zero",), "step": ("zero",)}
RESETS = {
    "layer-by-layer": "LIFNode resets to zero, with the gradient detached",
    "step": "LIFNode resets to zero, with the gradient detached",
}
DEVIATION = {
    "defaults": "tau = 2: each step halves the potential and adds half of the input; threshold 0.5; a triangle of "
    "height 2",
}


def spike_function(case):
    """A step with the derivative of the case's surrogate."""

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, distance):
            ctx.save_for_backward(distance)
            return (distance >= 0).to(distance.dtype)

        @staticmethod
        def backward(ctx, gradient):
            (distance,) = ctx.saved_tensors
            if case.surrogate == "fast_sigmoid":
                return gradient / (1 + case.slope * distance.abs()) ** 2
            return gradient * FORMULAS[case.surrogate](distance, case.slope, case.threshold, torch)

    return Spike.apply


def rule(case, variant):
    if variant != "defaults":
        return None
    triangle = {"surrogate": "triangle", "slope": 2.0, "surrogate_gain": 2.0}
    return Rule(beta=0.5, gain=0.5, threshold=0.5, reset="zero", detach_reset=True, **triangle)


def neuron(case, variant):
    require(case, "BrainCog keeps its threshold in float32", dtype="float32")
    if variant == "defaults":
        return SteppedNeuron(lambda neurons: stepped(LIFNode().to(case.device)))
    if case.beta >= 1:
        raise Unsupported("a neuron without a leak (beta >= 1) would need an infinite tau")
    tau = 1 / (1 - case.beta)
    if variant == "step":
        return SteppedNeuron(lambda neurons: stepped(node(case, tau)), gain=tau)
    return Neuron(
        lambda neurons: LayerByLayer(node(case, tau, layer_by_layer=True, step=case.time_steps)),
        gain=tau,
        reset=lambda layer: layer.node.n_reset(),
    )


def node(case, tau, **options):
    def act_fun(alpha, requires_grad):
        return spike_function(case)

    return LIFNode(threshold=case.threshold, tau=tau, act_fun=act_fun, **options).to(case.device)


class LayerByLayer:
    """A node on all time steps, which it takes as one axis with the batch."""

    def __init__(self, node):
        self.node = node

    def __call__(self, current):
        return self.node(current.flatten(0, 1)).view_as(current)


def stepped(node):
    def step(current, has_state):
        if not has_state:
            node.n_reset()
        return node(current), True

    return step
