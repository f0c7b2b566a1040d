# /// script
# requires-python = ">=3.11"
# dependencies = ["bindsnet==0.3.4", "torch==2.13.0", "numpy==2.4.6", "tqdm==4.70.1"]
#
# [[tool.uv.dependency-metadata]]
# name = "bindsnet"
# version = "0.3.4"
# requires-dist = []
#
# [tool.snnbench]
# api = 2
# ///
"""BindsNET: `LIFNodes` behind `Connection`s with a bias, run by its `Network`, with a `Monitor` on the last layer.

With `one_step=True` a time step passes through all layers; by default each layer runs one step after the layer before
it. The LIFNodes here rest at 0, have no refractory period, decay by exp(-dt / tc_decay) and reset to a value. There is
no backward pass, so an attached reset equals a detached one. With default arguments LIFNodes rest at -65 and fire at
-52 (mV), whatever the case's threshold.
Docs: https://bindsnet-docs.readthedocs.io/guide/guide_part_i.html
"""

import importlib
import math
import sys
from dataclasses import replace
from importlib.util import find_spec, module_from_spec
from types import SimpleNamespace

import torch

from snnbench.adapter import Unsupported, require, rule_of
from snnbench.backends.torch import Network

# Import bindsnet.network without the package's __init__. The __init__ imports torchvision, OpenCV, Gymnasium and more,
# and networks need none of them. A torchvision that was built for another torch fails to import.
sys.modules["bindsnet"] = module_from_spec(find_spec("bindsnet"))
bindsnet = importlib.import_module("bindsnet.network")

BACKEND = "torch"
VARIANTS = {
    "default": "LIFNodes that rest at 0, without a refractory period",
    "defaults": "LIFNodes(neurons) and Connection(source, neurons), all other arguments at their defaults",
}
EXACT = {"default": ("zero", "zero-attached")}
DEVIATION = {"defaults": "a threshold of 13, a decay of 1 % a step, and no input for 5 steps after a spike"}
RESETS = "LIFNodes reset to a value"
INFERENCE_ONLY = "states change in place and weights take no gradient: BindsNET trains by local rules"


def rule(case, variant):
    # The surrogate stays the case's, unused: BindsNET has no backward pass.
    neuron = rule_of(case)
    return replace(neuron, beta=math.exp(-1 / 100), threshold=13.0, reset="zero", detach_reset=True, refractory=5)


def nodes(case, variant, neurons):
    if variant == "defaults":
        return bindsnet.nodes.LIFNodes(neurons)
    if not 0 < case.beta < 1:
        raise Unsupported("beta = exp(-dt / tc_decay) must lie between 0 and 1")
    return bindsnet.nodes.LIFNodes(
        neurons, thresh=case.threshold, rest=0.0, reset=0.0, refrac=0, tc_decay=-1 / math.log(case.beta)
    )


def build(case, weights, variant):
    require(case, "BindsNET keeps its states in float32", dtype="float32")
    network, linears = bindsnet.Network(dt=1.0, batch_size=case.batch, learning=False), []
    entrance = last = bindsnet.nodes.Input(case.entering) if weights else nodes(case, variant, case.neurons)
    network.add_layer(entrance, "0")
    for number, layer in enumerate(weights, start=1):
        source, last = last, nodes(case, variant, len(layer.bias))
        connection = bindsnet.topology.Connection(source, last, w=layer.weight.T.contiguous(), b=layer.bias)
        network.add_layer(last, str(number))
        network.add_connection(connection, str(number - 1), str(number))
        linears.append(SimpleNamespace(weight=connection.w, bias=connection.b))
    network.to(case.device)
    monitor = bindsnet.monitors.Monitor(last, ["s"], time=case.time_steps, device=case.device)
    network.add_monitor(monitor, "spikes")

    def forward(x):
        # The last pass left a view of `x` in an input layer, and the reset would set it to 0 in place.
        entrance.s = torch.zeros_like(entrance.s)
        network.reset_state_variables()
        network.run({"0": x}, time=case.time_steps, one_step=True)
        return monitor.get("s")

    return Network(forward, linears, transposed=True, by_step=True)
