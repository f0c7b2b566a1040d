# /// script
# requires-python = ">=3.11"
# dependencies = ["tetherpy==0.2.0", "torch==2.13.0", "numpy==2.4.6"]
#
# [tool.uv]
# override-dependencies = ["torchvision ; python_version < '3'"]
#
# [tool.snnbench]
# api = 2
# ///
"""Tether: `LIF`, a Triton kernel over all time steps forward and one backward.

The backward kernel also computes the gradients of the decay, the threshold and the surrogate's slope in every pass.
Docs: https://github.com/Khushiyant/tether
"""

import tether
import torch

from snnbench.adapter import require
from snnbench.backends.torch import Neuron

BACKEND = "torch"
DEVICES = ("cuda",)
EXACT = ("zero",)
RESETS = "LIF resets to zero, with the gradient detached"
PROVIDER = ("^lif_fwd_kernel", "^lif_bwd_kernel")
SURROGATES = {"fast_sigmoid": tether.FastSigmoid, "sigmoid": tether.Sigmoid}


def neuron(case, variant):
    require(case, "this adapter sets the fast sigmoid and the sigmoid only", surrogate=tuple(SURROGATES))
    require(case, "LIF keeps its state in float32", dtype="float32")

    def layer(neurons):
        surrogate = SURROGATES[case.surrogate](alpha=case.slope)
        lif = tether.LIF(neurons, decay=case.beta, threshold=case.threshold, surrogate=surrogate)
        return lif.to(case.device).requires_grad_(False)

    return Neuron(layer, reset=forget)


def forget(lif):
    """Set the potential to zero; LIF has no method for that."""
    lif.v = torch.zeros_like(lif.v)
