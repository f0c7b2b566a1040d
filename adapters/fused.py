# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
#
# [tool.snnbench]
# cuda = ["cuda-core[cu13]==1.2.2"]
# modules = ["kernels"]
# ///
"""snnbench's own yardstick: linear and neuron as one differentiable operator, all time steps in one kernel each way.

We wrote it, to show what the hardware could do; it has no privilege in the harness.
Docs: https://docs.pytorch.org/docs/stable/library.html
"""

import torch

from snnbench import kernels
from snnbench.adapter import require
from snnbench.backends.torch import Network

BACKEND = "torch"
VARIANTS = {
    "cpu": "C kernel over stretches of time that stay in cache; keeps u - threshold in float32",
    "cpu-half": "the same, keeping 16 bits",
    "cpu-lowmem": "the same, keeping nothing but a potential now and then; computes the currents again",
    "torch": "operations of torch alone, on any device",
    "triton": "Triton kernel",
    "cuda": "CUDA C++ kernel; keeps u - threshold in float32",
    "cuda-half": "the same, keeping 16 bits",
    "cuda-lowmem": "the same, computing the currents again",
}
DEVICES = {
    "cpu": ("cpu",),
    "cpu-half": ("cpu",),
    "cpu-lowmem": ("cpu",),
    "triton": ("cuda",),
    "cuda": ("cuda",),
    "cuda-half": ("cuda",),
    "cuda-lowmem": ("cuda",),
}
WAYS = {"cuda-graph": "cuda"}
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached")
DEVIATION = {
    "cpu-half": "keeps u - threshold in 16 bits for the backward pass: spikes are exact, gradients rounded",
    "cuda-half": "keeps u - threshold in 16 bits for the backward pass: spikes are exact, gradients rounded",
}
PROVIDER = {
    "triton": ("^_forward", "^_backward"),
    "cuda": ("lif_forward", "lif_backward"),
    "cuda-half": ("lif_forward", "lif_backward"),
    "cuda-lowmem": ("lif_forward", "lif_backward"),
}
KEEPS = {"half": "bfloat16", "lowmem": "nothing"}


def build(case, weights, variant):
    require(case, "what it computes has a reset", profile=EXACT)
    kernel, _, keep = variant.partition("-")
    kernels.require(kernel, torch.device(case.device), getattr(torch, case.dtype))
    kernels.reuse_memory()  # the memory of large arrays on the CPU stays from one pass to the next
    network = Layers([layer.linear() for layer in weights], case, kernel, KEEPS.get(keep, "potential"))
    return Network(network, network.linears, provider=f"snnbench:{kernel}")


class Layers(torch.nn.Module):
    """A stack of linear layers and their neurons."""

    def __init__(self, linears, case, kernel, keep):
        super().__init__()
        self.linears = torch.nn.ModuleList(linears)
        names = ("beta", "threshold", "reset", "detach_reset", "surrogate", "slope")
        self.options = {name: getattr(case, name) for name in names} | {"kernel": kernel, "keep": keep}

    def forward(self, x):
        for linear in self.linears:
            x = kernels.linear_lif(x, linear.weight, linear.bias, **self.options)
        return x
