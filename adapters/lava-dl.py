# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "lava-dl==0.6.0", "lava-nc==0.10.0", "torch==2.13.0", "numpy==2.4.6", "matplotlib==3.11.2", "h5py==3.16.0"
# ]
#
# [[tool.uv.dependency-metadata]]
# name = "lava-dl"
# version = "0.6.0"
# requires-python = ">=3.10"
# requires-dist = []
#
# [[tool.uv.dependency-metadata]]
# name = "lava-nc"
# version = "0.10.0"
# requires-python = ">=3.10"
# requires-dist = []
#
# [tool.snnbench]
# cuda = ["ninja==1.13.2"]
# ///
"""Lava-DL: SLAYER's `block.cuba.Dense`, with a synapse that forgets at once, in the integers of the Loihi chip.

Its state is an integer in units of 1 / (64 scale), its decay a number of 12 bits (0.1 becomes 410 / 4096). `scale` is
65536: from 4096 on only the decay's rounding changes spikes, the exam's threshold is a multiple of 1 / 8192, and
float32, which holds the state between the functions, has the digits for no finer unit. Its own hook on the weights,
which by default rounds them to 8 bits, gives them the shape of a convolution. The surrogate gradient decays with
|u - threshold|; tau_grad and scale_grad give it the height and the area of the fast sigmoid. Released for
Python 3.10 and torch < 2.4, it runs as it is on what is pinned here.
Docs: https://lava-nc.org/
"""

import importlib
import sys
from types import ModuleType

import torch

from snnbench.adapter import Rule, Unavailable, require
from snnbench.backends.torch import Network

# The package imports it, and it imports OpenCV and torchvision, of which no neuron uses anything.
sys.modules["lava.lib.dl.slayer.object_detection"] = ModuleType("object_detection")
slayer = importlib.import_module("lava.lib.dl.slayer")
cuba = slayer.neuron.cuba

BACKEND = "torch"
ORDER = "BNT"
VARIANTS = {
    "slayer": "slayer.block.cuba.Dense, its weights not rounded to 8 bits",
    "defaults": "slayer.block.cuba.Dense(neuron, inputs, outputs), all else left as it is",
}
LATENCY = {"defaults": 1}
DEVIATION = {
    "slayer": "fixed-point state and a decay of 12 bits; "
    "the backward pass ignores the reset and has an exponential surrogate",
    "defaults": "the same with weights rounded to 8 bits and a state in units of 1 / 4096, and another surrogate",
}
SCALES = {"slayer": 1 << 16, "defaults": 1 << 6}
"""Of the threshold; the state's unit is a 64th of it."""
DECAYS = 1 << 12


def rule(case, variant):
    scale = SCALES[variant]
    unit = 1 / (64 * scale)
    threshold = int(case.threshold * scale) / scale
    as_it_comes = variant == "defaults"
    width = 100 * threshold if as_it_comes else 1 / case.slope
    return Rule(
        beta=1 - round(DECAYS * (1 - case.beta)) / DECAYS,
        threshold=threshold + 0.01 * unit,  # the chip fires above it, not at it
        reset="zero",
        resets_at=threshold if case.device.startswith("cuda") else None,  # its CUDA kernel cuts the 0.01 off
        detach_reset=True,
        reset_in_backward=False,
        surrogate="exponential",
        slope=1 / width,
        surrogate_gain=0.05 if as_it_comes else width,
        unit=unit,
        weight_step=1 / 32 if as_it_comes else 0.0,
    )


def build(case, weights, variant):
    if case.device.startswith("cuda"):
        try:
            _ = cuba.leaky_integrator.Accelerated.leaky_integrator
        except Exception as error:  # of compilers, drivers and torch
            reason = str(error).partition("\n")[0]
            raise Unavailable(f"its CUDA kernel, which nvcc compiles at first use, fails: {reason}") from error
    if variant == "defaults":
        require(case, "a later layer would get its input one step late", layers=1)
        layers = [as_it_comes(case, layer).to(case.device) for layer in weights]
        return Network(torch.nn.Sequential(*layers), [layer.synapse for layer in layers])
    require(case, "the neuron resets to zero, and the backward pass has no gradient through that", profile="zero")
    require(case, "the surrogate is an exponential, set to the fast sigmoid's size", surrogate="fast_sigmoid")
    require(case, "the state between the functions is float32", dtype="float32")
    layers = [block(case, layer).to(case.device) for layer in weights]
    return Network(torch.nn.Sequential(*layers), [layer.synapse for layer in layers])


def as_it_comes(case, layer):
    """With the axonal delay of a step that a layer has unless it is told otherwise."""
    outputs, inputs = layer.weight.shape
    neuron = {"threshold": case.threshold, "current_decay": 1.0, "voltage_decay": 1 - case.beta}
    dense = slayer.block.cuba.Dense(neuron, inputs, outputs)
    round_to_8_bits = dense.synapse.pre_hook_fx
    dense.synapse.pre_hook_fx = lambda weight: round_to_8_bits(weight[..., None, None, None])
    dense.synapse.weight = torch.nn.Parameter(layer.weight)
    dense.synapse.bias = torch.nn.Parameter(layer.bias)
    return dense


def block(case, layer):
    outputs, inputs = layer.weight.shape
    width = 1 / case.slope
    neuron = {
        "threshold": case.threshold,
        "current_decay": 1.0,
        "voltage_decay": 1 - case.beta,
        "tau_grad": width / (case.threshold * cuba.TAU_RHO_MULT),
        "scale_grad": 2 * width / cuba.SCALE_RHO_MULT,
        "scale": SCALES["slayer"],
    }
    dense = slayer.block.cuba.Dense(
        neuron, inputs, outputs, delay_shift=False, pre_hook_fx=lambda weight: weight[..., None, None, None]
    )
    dense.synapse.weight = torch.nn.Parameter(layer.weight)
    dense.synapse.bias = torch.nn.Parameter(layer.bias)  # off by default, but its convolution passes it on
    return dense
