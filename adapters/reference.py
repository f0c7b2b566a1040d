# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy==2.4.6"]
# ///
"""The NumPy reference in float64, run as a contender to verify the verifier, not to be timed against."""

import numpy as np

from snnbench.adapter import Unsupported
from snnbench.backends.numpy import Network
from snnbench.work import reference

BACKEND = "numpy"
DEVICES = ("cpu",)
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached", "none")


def build(case, weights, variant):
    if case.dtype != "float64":
        raise Unsupported("the reference computes in float64 only")

    def forward(x):
        traces = reference.network_forward(weights, x, case)
        return traces[-1].spikes, (x, traces)

    def backward(saved, cotangent):
        x, traces = saved
        gradients = reference.network_backward(weights, x, traces, np.asarray(cotangent), case)
        return gradients.weights, gradients.biases, gradients.input if case.input_gradient else None

    return Network(forward, backward)
