# /// script
# requires-python = ">=3.11"
# dependencies = ["snntorch-ipu==0.5.18", "torch==2.13.0", "numpy==2.4.6"]
# ///
"""snnTorch for Graphcore's IPU: `Leaky` behind a linear layer, compiled by PopTorch's `inferenceModel`.

This adapter was written from the documentation and the source of PopTorch and snntorch-ipu. It has run neither on an
IPU nor in the IPU Model: the tests use stand-ins for PopTorch and for the operators that snntorch-ipu compiles with the
Poplar SDK. The harness has no support for IPUs: its arrays are on the host, and tables name the host as the device and
use the host's floor. `Leaky` subtracts the threshold before the decay. Its reset to zero also drops the input of that
step, which makes it another neuron.
Docs: https://docs.graphcore.ai/projects/poptorch-user-guide/ and https://github.com/vinniesun/snntorch-ipu
"""

import torch

from snnbench.adapter import Unavailable, Unsupported, require
from snnbench.backends.torch import Network

BACKEND = "torch"
VARIANTS = {
    "model": "in the IPU Model, a simulation on the CPU: for verification, its times are not those of an IPU",
    "ipu": "on an IPU, including the copies from and to the host",
}
DEVICES = ("cpu",)
EXACT = ("subtract", "subtract-detached", "none")
INFERENCE_ONLY = "PopTorch gives no input gradient, and weight gradients only in one program with the weight update"
NEEDS = (
    "Graphcore's Poplar SDK (docs.graphcore.ai) with a PopTorch for Python 3.11 or later, the torch that PopTorch "
    "requires, and `--env current`"
)


def build(case, weights, variant):
    if not weights:
        raise Unsupported("this adapter has no neurons without linear layers")
    require(case, "snntorch-ipu's reset to zero also drops an input", reset=("subtract", "none"))
    require(case, "this adapter supports float32 only", dtype="float32")
    try:
        import poptorch
        import snntorch
    except (ImportError, SystemExit) as error:  # snntorch exits if its operators could not be compiled
        raise Unavailable(f"needs {NEEDS} ({error})") from error

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linears = torch.nn.ModuleList(layer.linear() for layer in weights)
            self.neurons = torch.nn.ModuleList(
                snntorch.Leaky(beta=case.beta, threshold=case.threshold, reset_mechanism=case.reset) for _ in weights
            )

        def forward(self, x):
            for linear, neuron in zip(self.linears, self.neurons, strict=True):
                potential, spikes = torch.zeros_like(x[0]), []
                for current in linear(x).unbind(0):
                    spike, potential = neuron(current, potential)
                    spikes.append(spike)
                x = torch.stack(spikes)
            return x

    net = Net().eval()
    options = poptorch.Options()
    options.useIpuModel(variant == "model")
    compiled = poptorch.inferenceModel(net, options)
    provider = "PopTorch, IPU Model" if variant == "model" else "PopTorch, IPU"
    return Network(lambda x: compiled(x.detach()), net.linears, provider=provider)
