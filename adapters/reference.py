# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy==2.4.6"]
# ///
"""The NumPy reference in float64, run as a contender to verify the verifier, not to be timed against."""

from snnbench.adapter import Unsupported
from snnbench.backends.numpy import Neuron
from snnbench.cases import reference

BACKEND = "numpy"
DEVICES = ("cpu",)
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached", "none")


def neuron(case, variant):
    if case.dtype != "float64":
        raise Unsupported("the reference computes in float64 only")

    def forward(current):
        trace = reference.forward(current, case)
        return trace.spikes, trace

    return Neuron(forward, lambda trace, cotangent: reference.backward(cotangent, trace, case))
