# /// script
# requires-python = ">=3.11"
# dependencies = ["sinabs==3.1.3", "torch==2.13.0", "numpy==2.4.6", "nir==1.0.4", "setuptools==84.2.1"]
#
# [tool.uv]
# override-dependencies = ["samna ; python_version < '3'", "torchvision ; python_version < '3'"]
# ///
"""Sinabs: `sinabs.layers.LIF`, with single spikes and without its normalised input.

Docs: https://sinabs.readthedocs.io/en/latest/api/layers.html
"""

import math

import sinabs.activation as activation
import sinabs.layers as layers

from snnbench.adapter import Unsupported, require
from snnbench.backends.torch import Network

BACKEND = "torch"
ORDER = "BTN"


class SubtractDetached:
    """The documented seam for a reset of one's own: a callable of (spikes, state, threshold)."""

    def __call__(self, spikes, state, spike_threshold):
        return {**state, "v_mem": state["v_mem"] - spikes.detach() * spike_threshold}


def build(case, weights, variant):
    require(case, "MembraneReset is detached", profile=("subtract", "zero", "subtract-detached"))
    require(case, "the fast sigmoid is what this adapter sets", surrogate="fast_sigmoid")
    require(case, "LIF always emits float32 spikes", dtype="float32")
    if not 0 < case.beta < 1:
        raise Unsupported("beta = exp(-1 / tau_mem) lies between 0 and 1")
    resets = {
        "subtract": activation.MembraneSubtract,
        "zero": activation.MembraneReset,
        "subtract-detached": SubtractDetached,
    }
    linears = [layer.linear() for layer in weights]
    neurons = []
    for _ in weights:
        neuron = layers.LIF(
            tau_mem=-1 / math.log(case.beta),
            spike_threshold=case.threshold,
            norm_input=False,
            spike_fn=activation.SingleSpike,
            reset_fn=resets[case.profile](),
            surrogate_grad_fn=lambda v, threshold: 1 / (1 + case.slope * (v - threshold).abs()) ** 2,
        ).to(case.device)
        neuron.tau_mem.requires_grad_(False)  # trained by default, which would be more work than asked for
        neurons.append(neuron)

    def forward(x):
        for linear, neuron in zip(linears, neurons, strict=True):
            neuron.reset_states()
            x = neuron(linear(x))
        return x

    return Network(forward, linears)
