# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""A dishonest PyTorch adapter for epochs: each variant leaves out work in the loop of an epoch, and nowhere else.

Only the variant `honest` may get a time.
"""

import sys

import torch

from snnbench.backends.torch import Neuron as Layer
from snnbench.kernels import Neuron, lif_ref

BACKEND = "torch"
EXACT = ("subtract",)
DEFAULT = "honest"
VARIANTS = {
    "honest": "lies nowhere",
    "stateless": "has no state in the loop",
    "shortened": "goes back through one step only in the loop",
}


def in_loop():
    """Whether the loop of an epoch has called this."""
    frame = sys._getframe()
    while frame and not frame.f_code.co_filename.endswith("feeding/epoch.py"):
        frame = frame.f_back
    return frame is not None


def neuron(case, variant):
    given = {"surrogate": case.surrogate, "slope": case.slope}
    honest, stateless = (Neuron(beta, case.threshold, "subtract", **given) for beta in (case.beta, 0.0))

    def shortened(current):
        """The honest spikes, with the gradient of the current of each step alone."""
        with torch.no_grad():
            spikes = lif_ref.lif(current, honest)[0]
            potentials, v = [], torch.zeros_like(current[0])
            for x, s in zip(current, spikes, strict=True):
                potentials.append(case.beta * v + x)
                v = potentials[-1] - case.threshold * s
        distance = torch.stack(potentials) + (current - current.detach()) - case.threshold
        return lif_ref.Spike.apply(distance, case.surrogate, case.slope, case.threshold)

    def layer(current):
        if variant == "honest" or not in_loop():
            return lif_ref.lif(current, honest)[0]
        return shortened(current) if variant == "shortened" else lif_ref.lif(current, stateless)[0]

    return Layer(lambda neurons: layer)
