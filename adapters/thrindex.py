# /// script
# requires-python = ">=3.11"
# dependencies = ["thrindex==0.5.0", "torch==2.13.0", "numpy==2.4.6"]
#
# [tool.snnbench]
# api = 2
# ///
"""thrindex: `LIF` in a `Sequential`, which runs all layers in each time step.

LIF's surrogate gradient is k / (2 (1 + k |u - threshold|)^2) and cannot be chosen. So this adapter exchanges the name
`FastSigmoid` in LIF's module for a spike function of its own.
Docs: https://docs.thrindex.com
"""

import math

import thrindex.snn
import torch

from snnbench.adapter import Rule, Unsupported, require
from snnbench.backends.torch import Network, Neuron, SteppedNeuron
from snnbench.cases.surrogate import FORMULAS

BACKEND = "torch"
VARIANTS = {
    "sequential": "Sequential(Dense, LIF), whose loop indexes the input, so the backward pass is quadratic in T",
    "step": "all layers inside a loop over time that unbinds the input",
    "defaults": "Sequential(Dense, LIF()), all other arguments at their defaults",
}
EXACT = {"sequential": ("subtract", "zero"), "step": ("subtract", "zero")}
SYNAPTIC = {"sequential": ("subtract", "zero"), "step": ("subtract", "zero")}
RESETS = {
    "sequential": "LIF subtracts with the gradient attached, and resets to zero with it detached",
    "step": "LIF subtracts with the gradient attached, and resets to zero with it detached",
}
DEVIATION = {"defaults": "a decay of exp(-1 / 10); a surrogate of slope 25, times 12.5"}


def spike_function(case):
    """LIF's own spike function, with the derivative of the case's surrogate."""

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, distance, slope):
            ctx.save_for_backward(distance)
            return (distance >= 0).float()

        @staticmethod
        def backward(ctx, gradient):
            (distance,) = ctx.saved_tensors
            if case.surrogate == "fast_sigmoid":
                return gradient / (1 + case.slope * distance.abs()) ** 2, None
            return gradient * FORMULAS[case.surrogate](distance, case.slope, case.threshold, torch), None

    return Spike


def rule(case, variant):
    if variant != "defaults":
        return None
    surrogate = {"surrogate": "fast_sigmoid", "slope": 25.0, "surrogate_gain": 12.5}
    return Rule(beta=math.exp(-1 / 10), threshold=1.0, reset="subtract", detach_reset=False, **surrogate)


def lif(case, variant):
    require(case, "LIF's spikes are float32", dtype="float32")
    if variant == "defaults":
        return thrindex.snn.LIF()
    if not math.exp(-1) < case.beta < 1:
        raise Unsupported("beta = exp(-dt / tau_mem) with tau_mem > dt must lie between 1 / e and 1")
    thrindex.snn.lif.FastSigmoid = spike_function(case)
    tau_mem, synapse = -1 / math.log(case.beta), {}
    if case.alpha:
        if not math.exp(-1) < case.alpha < 1:
            raise Unsupported("alpha = exp(-dt / tau_syn) with tau_syn > dt must lie between 1 / e and 1")
        synapse = {"tau_syn": -1 / math.log(case.alpha)}
    return thrindex.snn.LIF(case.threshold, tau_mem, reset=case.reset, beta=case.slope, **synapse).to(case.device)


def neuron(case, variant):
    layer = lif(case, variant)
    if variant == "step":
        return SteppedNeuron(lambda neurons: stepped(layer))
    return Neuron(lambda neurons: thrindex.snn.Sequential(layer))


def build(case, weights, variant):
    if variant == "step":
        return neuron(case, variant).stack(weights)
    linears = [layer.linear() for layer in weights]
    layers = [module for linear in linears for module in (dense(linear), lif(case, variant))]
    return Network(thrindex.snn.Sequential(*layers), linears, by_step=True)


def dense(linear):
    layer = thrindex.snn.Dense(linear.in_features, linear.out_features)
    layer.linear = linear
    return layer


def stepped(layer):
    def step(current, state):
        return layer(current, thrindex.snn.LIFState(torch.zeros_like(current)) if state is None else state)

    return step
