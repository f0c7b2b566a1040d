# /// script
# requires-python = ">=3.11"
# dependencies = ["snntorch==1.0.0", "torch==2.13.0", "numpy==2.4.6"]
#
# [tool.snnbench]
# nir = ["nir==1.0.8", "nirtorch==2.6"]
# ///
"""snnTorch: `snntorch.Leaky`, stepped through time by a Python loop as in its tutorials.

Leaky's reset by subtraction acts one step late and subtracts the undecayed threshold, which makes it another neuron.
With `reset_delay=False` it acts at once, but differs if a neuron charges beyond twice the threshold. So only the reset
to zero is exact.
Docs: https://snntorch.readthedocs.io/en/latest/snn.neurons_leaky.html
"""

import math
from dataclasses import replace

import snntorch as snn
import torch
from snntorch import surrogate, utils

from snnbench.adapter import Unsupported, require, rule_of
from snnbench.backends.torch import Network, Neuron, SteppedNeuron, compiled, modules, stepped_network
from snnbench.cases.surrogate import FORMULAS

BACKEND = "torch"
VARIANTS = {
    "unbind": "the linear layer before the loop over time, its output unbound along time",
    "index": "the linear layer before the loop over time; indexing current[t] makes the backward pass quadratic in T",
    "step": "all layers inside the loop over time, as in the tutorials",
    "compile-cell": "like unbind, with one step of the neuron compiled",
    "state-leaky": "StateLeaky, a convolution over time without a reset",
    "leaky-parallel": "LeakyParallel, an nn.RNN without a reset that includes the linear layer",
    "defaults": "Leaky(beta), all other arguments at their defaults",
}
EXACT = {
    "unbind": ("zero", "zero-attached"),
    "index": ("zero", "zero-attached"),
    "step": ("zero", "zero-attached"),
    "compile-cell": ("zero", "zero-attached"),
    "state-leaky": ("none",),
}
RESETS = {
    "unbind": "Leaky has no exact subtracting reset",
    "index": "Leaky has no exact subtracting reset",
    "step": "Leaky has no exact subtracting reset",
    "compile-cell": "Leaky has no exact subtracting reset",
    "state-leaky": "StateLeaky has no reset",
}
SYNAPTIC = {"unbind": ("zero-attached",)}
RECURRENT = {"unbind": ("zero-attached",)}
OWN_DECAYS = {"unbind": True, "index": True, "step": True}
CHUNKS = {"unbind": True, "step": True}
TRAINED = {"unbind": ("beta", "threshold"), "index": ("beta", "threshold")}
DEVIATION = {
    "leaky-parallel": "potentials below 0 are clipped by nn.RNN's ReLU",
    "defaults": "the reset subtracts the undecayed threshold one step late, without a gradient; arctangent surrogate",
}
COMPILES = {"compile-cell": True}
WAYS = ("compile", "cuda-graph", "amp")


def rule(case, variant):
    if variant != "defaults":
        return None
    neuron = replace(rule_of(case), threshold=1.0, detach_reset=True, surrogate="atan", slope=2.0)
    return neuron.resetting_after_decay()


def neuron(case, variant):
    if variant == "leaky-parallel":
        raise Unsupported("LeakyParallel contains its linear layer")
    if variant == "state-leaky":
        return Neuron(lambda neurons: state_leaky(case, neurons))
    if variant in ("step", "defaults"):
        return SteppedNeuron(lambda neurons: stepped(leaky(case, variant)))
    if case.alpha:
        require(case, "this adapter trains the constants of Leaky, not of Synaptic", trained="none")
        require(case, "RSynaptic with reset_delay=False adds a state to a missing one, and fails", is_recurrent=False)
        return Neuron(lambda neurons: synaptic(case))
    loop = {"compile-cell": compiled_loop, "index": indexed_loop}.get(variant, looped)
    if case.trained_constants:
        require(case, "this adapter trains the constants of Leaky, not of RLeaky", is_recurrent=False)

        def training(neurons):
            neuron = learning(case, neurons)
            layer = loop(neuron)
            layer.constants = {name: getattr(neuron, name) for name in case.trained_constants}
            return layer

        return Neuron(training, constants=lambda layer: layer.constants)
    if case.chunk_steps:
        return Neuron(lambda neurons: leaky(case, variant), chunk=next_steps)
    return Neuron(lambda neurons: loop(leaky(case, variant)), recurrent=lambda own: recurrent(case, own))


def build(case, weights, variant):
    if variant == "leaky-parallel":
        return leaky_parallel(case, weights)
    return neuron(case, variant).stack(weights)


def synaptic(case):
    """Synaptic with the immediate reset: the delayed one, its default, drops the input of the next step."""
    neuron = snn.Synaptic(
        alpha=case.alpha,
        beta=case.beta,
        threshold=case.threshold,
        reset_mechanism=case.reset,
        reset_delay=False,
        spike_grad=spike_grad(case),
    ).to(case.device)

    def layer(current):
        (current_now, potential), spikes = neuron.reset_mem(), []
        for x in current.unbind(0):
            spike, current_now, potential = neuron(x, current_now, potential)
            spikes.append(spike)
        return torch.stack(spikes)

    return layer


def recurrent(case, own):
    """RLeaky with the immediate reset: the delayed one, its default, drops the input of the next step."""
    neuron = snn.RLeaky(
        beta=case.beta,
        all_to_all=True,
        linear_features=own.in_features,
        threshold=case.threshold,
        reset_mechanism=case.reset,
        reset_delay=False,
        spike_grad=spike_grad(case),
    ).to(case.device)
    neuron.recurrent = own

    def layer(current):
        (spike, potential), spikes = neuron.reset_mem(), []
        for x in current.unbind(0):
            spike, potential = neuron(x, spike, potential)
            spikes.append(spike)
        return torch.stack(spikes)

    return layer


def leaky(case, variant):
    if variant == "defaults":
        return snn.Leaky(beta=case.beta).to(case.device)
    return snn.Leaky(
        beta=case.beta,
        threshold=case.threshold,
        reset_mechanism="zero",
        reset_delay=case.detach_reset,  # the delayed reset is detached, the immediate one attached
        spike_grad=spike_grad(case),
    ).to(case.device)


def learning(case, neurons):
    """A Leaky that trains the case's constants."""
    shape = (neurons,) if case.trained_each == "neuron" else ()
    values = {name: torch.full(shape, getattr(case, name)) for name in case.trained_constants}
    options = {"beta": case.beta, "threshold": case.threshold, "reset_mechanism": case.reset} | values
    options |= {f"learn_{name}": True for name in values}
    return snn.Leaky(**options, reset_delay=case.detach_reset, spike_grad=spike_grad(case)).to(case.device)


def spike_grad(case):
    require(case, "Leaky always emits float32 spikes", dtype="float32")
    if case.surrogate in ("fast_sigmoid", "sigmoid"):
        return getattr(surrogate, case.surrogate)(slope=case.slope)
    if case.surrogate == "atan":
        return surrogate.atan(alpha=case.slope)
    return surrogate.custom_surrogate(
        lambda distance, gradient, spikes: (
            gradient * FORMULAS[case.surrogate](distance, case.slope, case.threshold, torch)
        )
    )


def looped(neuron, one_step=None):
    one_step = one_step or neuron

    def layer(current):
        potential, spikes = neuron.reset_mem(), []
        for x in current.unbind(0):
            spike, potential = one_step(x, potential)
            spikes.append(spike)
        return torch.stack(spikes)

    return layer


def next_steps(neuron, current, potential):
    """The next steps of a sequence, from the potential that the steps before left."""
    potential, spikes = neuron.reset_mem() if potential is None else potential, []
    for x in current.unbind(0):
        spike, potential = neuron(x, potential)
        spikes.append(spike)
    return torch.stack(spikes), potential


def compiled_loop(neuron):
    return looped(neuron, compiled(neuron))


def indexed_loop(neuron):
    def layer(current):
        potential, spikes = neuron.reset_mem(), []
        for t in range(len(current)):
            spike, potential = neuron(current[t], potential)
            spikes.append(spike)
        return torch.stack(spikes)

    return layer


def stepped(neuron):
    return lambda current, potential: neuron(current, neuron.reset_mem() if potential is None else potential)


def state_leaky(case, neurons):
    if not 0 < case.beta < 1:
        raise Unsupported("StateLeaky decays by exp(-(1 - beta)), which must lie between 0 and 1")
    options = {"channels": neurons, "threshold": case.threshold, "spike_grad": spike_grad(case)}
    neuron = snn.StateLeaky(beta=1 + math.log(case.beta), **options).to(case.device)
    return lambda current: neuron(current)[0]


class Rnn:
    """The weight and bias of LeakyParallel's own linear layer, under the names that a linear layer uses."""

    def __init__(self, neuron):
        self.weight, self.bias = neuron.rnn.weight_ih_l0, neuron.rnn.bias_ih_l0


def leaky_parallel(case, weights):
    require(case, "LeakyParallel has no reset", profile="none")
    neurons = []
    for layer in weights:
        outputs, inputs = layer.weight.shape
        neuron = snn.LeakyParallel(
            inputs,
            outputs,
            beta=case.beta,
            threshold=case.threshold,
            spike_grad=spike_grad(case),
        ).to(case.device)
        with torch.no_grad():
            neuron.rnn.weight_ih_l0.copy_(layer.weight)
            neuron.rnn.bias_ih_l0.copy_(layer.bias)
            neuron.rnn.bias_hh_l0.zero_()
        neuron.rnn.bias_hh_l0.requires_grad_(False)  # a second bias; its gradient would be extra work
        neurons.append(neuron)
    return Network(torch.nn.Sequential(*neurons), [Rnn(neuron) for neuron in neurons])


def from_nir(path, dt, batch):
    import nir
    from snntorch.import_nir import import_from_nir

    network = import_from_nir(nir.read(path))  # it has no argument for dt

    def step(current, state):
        output, state = network(current, state)
        return output[0] if isinstance(output, tuple) else output, state  # its IF gives its potential, too

    return stepped_network(step)


def to_nir(layers, dt, path):
    import nir
    from snntorch.export_nir import export_to_nir

    def neurons_of(case, neurons):
        options = {name: torch.full((neurons,), getattr(case, name)) for name in ("beta", "threshold")}
        options |= {"reset_mechanism": "zero", "reset_delay": False, "init_hidden": True}
        if not case.alpha:
            return snn.Leaky(**options), 1.0
        return snn.Synaptic(alpha=torch.full((neurons,), case.alpha), **options), 1.0

    network = torch.nn.Sequential(*modules(layers, neurons_of))
    nir.write(path, export_to_nir(network, torch.zeros(network[0].in_features)))  # it has no argument for dt
    utils.reset(network)
    return stepped_network(lambda current, state: (network(current), None))
