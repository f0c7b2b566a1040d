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
# api = 2
# cuda = [
#     "nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-cccl==13.0.85",
#     "ninja==1.13.2",
# ]
# ///
"""Lava-DL: SLAYER's `block.cuba.Dense` in the integers of the Loihi chip, with a synapse that has no memory.

The state is an integer in units of 1 / (64 scale), and the decay a number of 12 bits (0.1 becomes 410 / 4096). `scale`
is 65536 for three reasons: from 4096 on only the decay's rounding changes spikes; the exam's threshold is a multiple
of 1 / 8192; and float32, which holds the state between the functions, has no digits for a finer unit. By default the
block's hook on the weights rounds them to 8 bits; in `slayer` it only gives them the shape of a convolution. The
surrogate gradient decays with |u - threshold|; tau_grad and scale_grad give it the height and the area of the fast
sigmoid. Lava-DL was released for Python 3.10 and torch < 2.4, and runs unchanged on the versions pinned here.
Docs: https://lava-nc.org/
"""

import importlib
import sys
from types import ModuleType

import torch

from snnbench.adapter import Rule, Unavailable, Unsupported, require
from snnbench.backends.torch import Network

# The package imports object_detection, which imports OpenCV and torchvision. The neurons need neither.
sys.modules["lava.lib.dl.slayer.object_detection"] = ModuleType("object_detection")
slayer = importlib.import_module("lava.lib.dl.slayer")
cuba = slayer.neuron.cuba

BACKEND = "torch"
ORDER = "BNT"
VARIANTS = {
    "slayer": "slayer.block.cuba.Dense, without the rounding of its weights to 8 bits",
    "defaults": "slayer.block.cuba.Dense(neuron, inputs, outputs), all other arguments at their defaults",
}
LATENCY = {"defaults": 1}
DEVIATION = {
    "slayer": "fixed-point state and a decay of 12 bits; "
    "the backward pass ignores the reset and has an exponential surrogate",
    "defaults": "fixed-point state in units of 1 / 4096, a decay of 12 bits and weights rounded to 8 bits; "
    "the backward pass ignores the reset and has an exponential surrogate of the default size",
}
SCALES = {"slayer": 1 << 16, "defaults": 1 << 6}
"""The threshold is a multiple of 1 / scale, the state a multiple of 1 / (64 scale)."""
DECAY_STEPS = 1 << 12


def rule(case, variant):
    scale = SCALES[variant]
    unit = 1 / (64 * scale)
    threshold = int(case.threshold * scale) / scale
    is_default = variant == "defaults"
    width = 100 * threshold if is_default else 1 / case.slope
    return Rule(
        beta=1 - round(DECAY_STEPS * (1 - case.beta)) / DECAY_STEPS,
        threshold=threshold + 0.01 * unit,  # the chip fires above the threshold, not at it
        reset="zero",
        resets_at=threshold if case.device.startswith("cuda") else None,  # the CUDA kernel cuts the 0.01 off
        detach_reset=True,
        reset_in_backward=False,
        surrogate="exponential",
        slope=1 / width,
        surrogate_gain=0.05 if is_default else width,
        unit=unit,
        weight_step=1 / 32 if is_default else 0.0,
    )


def build(case, weights, variant):
    if case.device.startswith("cuda"):
        # On every GPU newer than the 3080 the package compiles for compute capability 8.0, which a Hopper cannot run.
        slayer.jitconfig.TORCH_CUDA_ARCH_LIST = "{}.{}".format(*torch.cuda.get_device_capability(case.device))
        try:
            _ = cuba.leaky_integrator.Accelerated.leaky_integrator
        except Exception as error:  # from a compiler, a driver or torch
            reason = str(error).partition("\n")[0]
            raise Unavailable(f"Lava-DL's CUDA kernel, compiled by nvcc at first use, fails: {reason}") from error
    neuron = {"threshold": case.threshold, "current_decay": 1.0, "voltage_decay": 1 - case.beta}
    options = {}
    if variant == "defaults":
        require(case, "a second layer would get its input one step late", sites=1)
        if not weights:
            raise Unsupported("the variant is a block with a delay, of which the neuron is a part")
    else:
        reset = "the neuron resets to zero, and the backward pass has no gradient through the reset"
        require(case, reset, profile="zero")
        require(case, "the exponential surrogate is set to the size of the fast sigmoid", surrogate="fast_sigmoid")
        require(case, "the state between Lava-DL's functions is float32", dtype="float32")
        width = 1 / case.slope
        neuron["tau_grad"] = width / (case.threshold * cuba.TAU_RHO_MULT)
        neuron["scale_grad"] = 2 * width / cuba.SCALE_RHO_MULT
        neuron["scale"] = SCALES["slayer"]
        options = {"delay_shift": False, "pre_hook_fx": lambda weight: weight}
    if not weights:
        return Network(cuba.Neuron(**neuron).to(case.device), [])
    layers = [block(neuron, layer, **options).to(case.device) for layer in weights]
    return Network(torch.nn.Sequential(*layers), [layer.synapse for layer in layers])


def block(neuron, layer, **options):
    """A block with these weights. With default options it has an axonal delay of one step."""
    dense = slayer.block.cuba.Dense(neuron, *layer.weight.T.shape, **options)
    hook = dense.synapse.pre_hook_fx
    dense.synapse.pre_hook_fx = lambda weight: hook(weight[..., None, None, None])
    dense.synapse.weight = torch.nn.Parameter(layer.weight)
    dense.synapse.bias = torch.nn.Parameter(layer.bias)  # off by default, but the block's convolution uses it
    return dense
