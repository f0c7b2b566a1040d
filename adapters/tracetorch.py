# /// script
# requires-python = ">=3.11"
# dependencies = ["tracetorch==0.19.2", "torch==2.13.0", "numpy==2.4.6"]
#
# [tool.uv]
# override-dependencies = ["matplotlib ; python_version < '3'", "scipy ; python_version < '3'"]
#
# [tool.snnbench]
# api = 2
# ///
"""traceTorch: `LIB`, a leaky neuron that computes one time step and keeps its potential between steps.

LIB's spike function is an argument, and the default one gives the probability of a spike.
Docs: https://yegor-men.github.io/tracetorch/
"""

import math

import torch
import tracetorch

from snnbench.adapter import Unsupported, require
from snnbench.backends.torch import Neuron, SteppedNeuron
from snnbench.cases.surrogate import FORMULAS

BACKEND = "torch"
VARIANTS = {
    "unbind": "the linear layer before the loop over time, its output unbound along time",
    "step": "all layers inside the loop over time, as in the examples",
    "defaults": "LIB(neurons) inside the loop over time, all other arguments at their defaults",
}
EXACT = {"unbind": ("subtract",), "step": ("subtract",)}
TRAINED = {"unbind": ("beta", "threshold")}
RESETS = {
    "unbind": "LIB subtracts, with the gradient attached",
    "step": "LIB subtracts, with the gradient attached",
}
DEVIATION = {"defaults": "a step gives the probability sigmoid(4 (u - threshold)) and not a spike, and subtracts it"}


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


def neuron(case, variant):
    require(case, "traceTorch keeps its parameters in float32", dtype="float32")
    if variant == "defaults":
        return SteppedNeuron(lambda neurons: stepped(tracetorch.snn.LIB(neurons).to(case.device)))
    if not 0 < case.beta < 1:
        raise Unsupported("traceTorch computes beta by a sigmoid, so it must lie between 0 and 1")
    if variant == "step":
        return SteppedNeuron(lambda neurons: stepped(lib(case, neurons)))
    reset = {"reset": lambda layer: layer.neurons.zero_states()}
    if case.trained_constants:
        return Neuron(lambda neurons: Looped(lib(case, neurons)), constants=lambda layer: raw(case, layer), **reset)
    return Neuron(lambda neurons: Looped(lib(case, neurons)), **reset)


def lib(case, neurons):
    """A layer with one decay and one threshold for all neurons, which are not trained unless the case says so."""
    rank = int(case.trained_each == "neuron")
    return tracetorch.snn.LIB(
        neurons,
        beta=case.beta,
        threshold=case.threshold,
        beta_rank=rank,
        threshold_rank=rank,
        bias_rank=0,
        learn_beta="beta" in case.trained_constants,
        learn_threshold="threshold" in case.trained_constants,
        learn_bias=False,
        spike_fn=spike_function(case),
    ).to(case.device)


def raw(case, layer):
    """The tensors behind beta = sigmoid(raw) and threshold = softplus(raw), with the derivatives of these."""
    by_raw = {"beta": case.beta * (1 - case.beta), "threshold": -math.expm1(-case.threshold)}
    return {name: (getattr(layer.neurons, f"raw_{name}"), by_raw[name]) for name in case.trained_constants}


class Looped:
    """A layer of neurons in a loop over time."""

    def __init__(self, neurons):
        self.neurons = neurons

    def __call__(self, current):
        return torch.stack([self.neurons(x) for x in current.unbind(0)])


def stepped(layer):
    def step(current, has_state):
        if not has_state:
            layer.zero_states()
        return layer(current), True

    return step
