# /// script
# requires-python = ">=3.11"
# dependencies = ["snntorch==1.0.0", "torch==2.13.0", "numpy==2.4.6"]
# ///
"""snnTorch: `snntorch.Leaky`, stepped through time by a Python loop as in its tutorials.

Its subtracting reset takes the threshold off one step late and undecayed, which is another neuron; `reset_delay=False`
does so at once, but differs where a neuron charges beyond twice the threshold. So only reset to zero is exact.
Docs: https://snntorch.readthedocs.io/en/latest/snn.neurons_leaky.html
"""

import snntorch as snn
import torch
from snntorch import surrogate

from snnbench.adapter import require
from snnbench.backends.torch import Network

BACKEND = "torch"
VARIANTS = {
    "unbind": "the linear layer before the loop, its output unbound along time",
    "index": "the linear layer before the loop, which indexes current[t]: a backward pass quadratic in T",
    "step": "the linear layer inside the loop, as the tutorials have it",
}


def build(case, weights, variant):
    require(case, "Leaky has no exact subtracting reset", profile=("zero", "zero-attached"))
    require(case, "the fast sigmoid is what this adapter sets", surrogate="fast_sigmoid")
    require(case, "Leaky always emits float32 spikes", dtype="float32")
    linears = [layer.linear() for layer in weights]
    neurons = [
        snn.Leaky(
            beta=case.beta,
            threshold=case.threshold,
            reset_mechanism="zero",
            reset_delay=case.detach_reset,  # the delayed reset is the detached one; without delay it is attached
            spike_grad=surrogate.fast_sigmoid(slope=case.slope),
        ).to(case.device)
        for _ in weights
    ]
    return Network({"unbind": unbind, "index": index, "step": step}[variant](linears, neurons), linears)


def unbind(linears, neurons):
    def forward(x):
        for linear, leaky in zip(linears, neurons, strict=True):
            potential, spikes = leaky.reset_mem(), []
            for current in linear(x).unbind(0):
                spike, potential = leaky(current, potential)
                spikes.append(spike)
            x = torch.stack(spikes)
        return x

    return forward


def index(linears, neurons):
    def forward(x):
        for linear, leaky in zip(linears, neurons, strict=True):
            potential, spikes, current = leaky.reset_mem(), [], linear(x)
            for t in range(len(current)):
                spike, potential = leaky(current[t], potential)
                spikes.append(spike)
            x = torch.stack(spikes)
        return x

    return forward


def step(linears, neurons):
    def forward(x):
        potentials, spikes = [leaky.reset_mem() for leaky in neurons], []
        for spike in x:
            for number, (linear, leaky) in enumerate(zip(linears, neurons, strict=True)):
                spike, potentials[number] = leaky(linear(spike), potentials[number])
            spikes.append(spike)
        return torch.stack(spikes)

    return forward
