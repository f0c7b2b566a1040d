# /// script
# requires-python = ">=3.11"
# dependencies = ["sinabs==3.1.3", "torch==2.13.0", "numpy==2.4.6", "nir==1.0.4", "setuptools==84.2.1"]
#
# [tool.uv]
# override-dependencies = ["samna ; python_version < '3'", "torchvision ; python_version < '3'"]
#
# [tool.snnbench]
# nir = ["nirtorch==2.0.2"]
#
# [tool.snnbench.variants.exodus]
# cuda = [
#     "nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia-nvvm==13.0.88", "nvidia-cuda-cccl==13.0.85",
#     "ninja==1.13.2",
# ]
# built = ["sinabs-exodus==2.0.0"]
# ///
"""Sinabs: `sinabs.layers.LIF`, or IAF for a neuron without decay, and those of sinabs-exodus.

The gradient of EXODUS is that of a reset that subtracts and is not detached. With that reset both compute the same
neuron.
Docs: https://sinabs.readthedocs.io/en/latest/api/layers.html
"""

import math
from dataclasses import replace

import sinabs.activation as activation
import sinabs.layers as layers
import torch

from snnbench.adapter import Unavailable, Unsupported, require, rule_of
from snnbench.backends.torch import Neuron, modules
from snnbench.cases.surrogate import FORMULAS

BACKEND = "torch"
ORDER = "BTN"
VARIANTS = {
    "default": "LIF with single spikes and without input normalisation, looped over time in torch",
    "exodus": "the LIF of sinabs.exodus.layers, with CUDA kernels over all steps; the backward pass is quadratic in T",
    "defaults": "LIF(tau_mem), all other arguments at their defaults",
}
DEVICES = {"exodus": ("cuda",)}
EXACT = {"default": ("subtract", "zero", "subtract-detached"), "exodus": ("subtract",)}
SYNAPTIC = {"default": ("subtract", "zero", "subtract-detached")}
RECURRENT = {"default": ("subtract", "zero", "subtract-detached")}
TRAINED = {"default": ("beta",)}
OWN_DECAYS = {"default": True}
CHUNKS = {"default": True}
RESETS = {
    "default": "MembraneReset, the reset to zero, is detached",
    "exodus": "EXODUS subtracts, with the gradient attached",
}
DEVIATION = {"defaults": "the input is scaled by 1 - beta, and a step may hold several spikes; exponential surrogate"}
WAYS = ("compile", "cuda-graph", "amp")
PROVIDER = {"exodus": ("lifForwardKernel",)}


UNLIMITED_SPIKES = 1 << 30
"""No limit in a step: a neuron fires once for each multiple of the threshold in its potential."""


class SubtractDetached:
    """A custom reset in the documented form: a callable of (spikes, state, threshold)."""

    def __call__(self, spikes, state, spike_threshold):
        return {**state, "v_mem": state["v_mem"] - spikes.detach() * spike_threshold}


def rule(case, variant):
    if variant != "defaults":
        return None
    return replace(
        rule_of(case),
        gain=1 - case.beta,
        threshold=1.0,
        reset="subtract",
        detach_reset=False,
        most_spikes=UNLIMITED_SPIKES,
        surrogate="exponential",
        slope=2.0,
    )


def neuron(case, variant):
    if not (case.has_own_decays or 0 < case.beta <= 1):
        raise Unsupported("beta = exp(-1 / tau_mem) must lie between 0 and 1, or be 1, for the neuron IAF")
    decay = {}
    if case.has_own_decays or case.beta < 1:
        tau_mem = -1 / torch.log(case.beta) if case.has_own_decays else -1 / math.log(case.beta)
        decay = {"tau_mem": tau_mem, "norm_input": False}
    if variant == "defaults":
        if not decay:
            raise Unsupported("LIF needs a decay below 1")
        return Neuron(lambda neurons: layers.LIF(tau_mem).to(case.device), reset=layers.LIF.reset_states)
    require(case, "LIF always emits float32 spikes", dtype="float32")
    resets = {
        "subtract": activation.MembraneSubtract,
        "zero": activation.MembraneReset,
        "subtract-detached": SubtractDetached,
    }
    library = exodus_layers() if variant == "exodus" else layers
    Neurons = library.LIF if decay else library.IAF
    Recurrent = layers.LIFRecurrent if decay else layers.IAFRecurrent
    gain = 1.0
    if case.alpha:
        if not (0 < case.alpha < 1 and decay):
            raise Unsupported("alpha = exp(-1 / tau_syn) and beta must lie between 0 and 1")
        decay["tau_syn"], gain = -1 / math.log(case.alpha), 1 / case.alpha  # the current decays before it is read

    if case.trained_constants:
        if not decay:
            raise Unsupported("IAF has no decay to train")
        decay["train_alphas"] = True

    def layer(neurons, kind=Neurons, **connection):
        if case.trained_each == "neuron":
            connection["tau_mem"] = torch.full((neurons,), decay["tau_mem"])
        lif = kind(
            **decay | connection,
            spike_threshold=case.threshold,
            spike_fn=activation.SingleSpike,
            reset_fn=resets[case.profile](),
            surrogate_grad_fn=lambda v, threshold: slope_at(case, v - threshold),
        ).to(case.device)
        if case.trained_constants:
            if case.alpha:
                lif.alpha_syn.requires_grad_(False)
            return lif
        if decay:
            lif.tau_mem.requires_grad_(False)  # trainable by default, but its gradient would be extra work
        if case.alpha:
            lif.tau_syn.requires_grad_(False)
        return lif

    def recurrent(own):
        return layer(own.in_features, Recurrent, rec_connect=own)

    provider = "exodus" if variant == "exodus" else "torch"
    constants = (lambda layer: {"beta": layer.alpha_mem}) if case.trained_constants else None
    return Neuron(
        layer, gain, provider, reset=Neurons.reset_states, recurrent=recurrent, constants=constants, chunk=next_steps
    )


def next_steps(lif, current, potential):
    """The next steps of a sequence, from the potential that the steps before left."""
    if potential is not None:
        lif.v_mem = potential
    return lif(current), lif.v_mem


def slope_at(case, distance):
    """The derivative of the case's surrogate at distances from the threshold."""
    if case.surrogate == "fast_sigmoid":
        return 1 / (1 + case.slope * distance.abs()) ** 2
    return FORMULAS[case.surrogate](distance, case.slope, case.threshold, torch)


def exodus_layers():
    try:
        from sinabs.exodus import layers
    except ImportError as error:
        raise Unavailable(f"sinabs-exodus, which is compiled against torch, cannot be imported: {error}") from error
    return layers


def from_nir(path, dt, batch):
    import nir
    from sinabs.nir import from_nir as import_graph

    network = import_graph(nir.read(path), batch_size=batch)  # it has no argument for dt

    def run(spikes):
        steps = len(spikes)
        with torch.no_grad():  # the samples and their steps share the first axis
            output, _ = network(torch.from_numpy(spikes).transpose(0, 1).flatten(0, 1))
        return output.unflatten(0, (batch, steps)).transpose(0, 1)

    return run


def to_nir(graph, dt, path):
    import nir
    from sinabs.nir import to_nir as export

    def neurons_of(case, neurons):
        options = {"spike_threshold": torch.full((neurons,), case.threshold), "batch_size": 1}
        options |= {"spike_fn": activation.SingleSpike, "reset_fn": activation.MembraneReset()}
        if case.beta == 1:
            return layers.IAFSqueeze(**options), 1.0
        options |= {"tau_mem": torch.full((neurons,), -1 / math.log(case.beta)), "norm_input": False}
        if not case.alpha:
            return layers.LIFSqueeze(**options), 1.0
        tau_syn = torch.full((neurons,), -1 / math.log(case.alpha))
        return layers.LIFSqueeze(tau_syn=tau_syn, **options), 1 / case.alpha  # the current decays before it is read

    network = torch.nn.Sequential(*modules(graph, neurons_of))
    nir.write(path, export(network, torch.zeros(1, network[0].in_features)))

    def run(spikes):
        samples = []
        with torch.no_grad():
            for sample in torch.from_numpy(spikes).unbind(1):
                for neurons in network[1::2]:
                    neurons.reset_states()
                samples.append(network(sample))
        return torch.stack(samples, 1)

    return run
