# /// script
# requires-python = ">=3.11"
# dependencies = ["spikingjelly==2.0.0", "torch==2.13.0", "numpy==2.4.6"]
#
# [tool.uv]
# override-dependencies = ["torchvision ; python_version < '3'", "torchaudio ; python_version < '3'"]
# ///
"""SpikingJelly: `LIFNode` in multi-step mode; on CUDA it chooses its own kernel, which the record names.

Docs: https://spikingjelly.readthedocs.io/zh-cn/latest/APIs/spikingjelly.activation_based.neuron.html
"""

import torch
from spikingjelly.activation_based import functional, neuron, surrogate

from snnbench.adapter import Unsupported, require
from snnbench.backends.torch import Network

BACKEND = "torch"


def build(case, weights, variant):
    require(case, "SuperSpike(alpha=1) is the fast sigmoid", surrogate="fast_sigmoid", slope=1.0)
    if case.beta <= 0 or case.beta >= 1:
        raise Unsupported("beta = 1 - 1 / tau with tau > 1 lies between 0 and 1")
    linears = [layer.linear() for layer in weights]
    neurons = [
        neuron.LIFNode(
            tau=1 / (1 - case.beta),
            decay_input=False,
            v_threshold=case.threshold,
            v_reset=0.0 if case.reset == "zero" else None,
            surrogate_function=surrogate.SuperSpike(alpha=1.0),
            detach_reset=case.detach_reset,
            step_mode="m",
        ).to(case.device)
        for _ in weights
    ]

    def forward(x):
        for linear, node in zip(linears, neurons, strict=True):
            functional.reset_net(node)
            x = node(linear(x))
        return x

    def provider():
        return str(functional.neuron_implementation("lif", torch.device(case.device))["implementation"])

    return Network(forward, linears, provider=provider)
