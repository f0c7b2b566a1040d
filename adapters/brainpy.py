# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "brainpy-state==0.1.0", "brainpy==2.8.2", "brainstate==0.5.4", "braintools==0.3.0", "brainunit==0.5.2",
#     "brainevent==0.2.1", "jax==0.10.2", "numpy==2.4.6",
# ]
#
# [tool.snnbench]
# api = 2
# cuda = ["jax[cuda13]==0.10.2"]
# ///
"""BrainPy: `brainpy.state.LIF` in a `for_loop` of brainstate, without units and with a step of 1.

LIF resets at the start of the next step. Its soft reset is exact. Its hard reset subtracts the potential as a constant:
the spikes are those of a reset to zero, and the gradient is that of neither reset to zero.
brainpy-state is retired, and brainpy 2.9.0 has `brainpy.state` itself. That release asks for Python 3.12, and snnbench
also runs on 3.11, where uv refuses it ("brainpy==2.9.0 depends on Python>=3.12"). So these are the last pins for 3.11.
Docs: https://brainx.chaobrain.com/brainpy-state/
"""

import math
from dataclasses import replace

import brainpy
import brainstate
import braintools
import brainunit
import jax
import jax.numpy as jnp

from snnbench.adapter import Rule, Unsupported, require, rule_of
from snnbench.backends.jax import Network, Neuron
from snnbench.cases.surrogate import FORMULAS

BACKEND = "jax"
VARIANTS = {
    "inside": "Linear and LIF inside the loop over time, as in the tutorials",
    "outside": "the linear layer before the loop over time",
    "hard": "like outside, with spk_reset='hard'",
    "defaults": "LIF(neurons) inside the loop over time with a step of 1 ms, all other arguments at their defaults",
}
EXACT = {"inside": ("subtract",), "outside": ("subtract",)}
RESETS = {
    "inside": "LIF's soft reset subtracts, with the gradient attached",
    "outside": "LIF's soft reset subtracts, with the gradient attached",
}
DEVIATION = {
    "hard": "the backward pass takes the potential that the reset to zero removes as a constant",
    "defaults": "tau = 5 ms: a step keeps 0.82 of the potential and adds 0.18 of the input; a triangle of height 0.3",
}


def rule(case, variant):
    if variant == "hard":
        return replace(rule_of(case), reset="zero", detach_reset=False, holds_removed=True)
    if variant == "defaults":
        decay = math.exp(-1 / 5)
        triangle = {"surrogate": "triangle", "slope": 1.0, "surrogate_gain": 0.3}
        return Rule(beta=decay, gain=1 - decay, threshold=1.0, reset="subtract", detach_reset=False, **triangle)
    return None


def lif(case, variant):
    """A function that makes a layer of so many neurons."""
    require(case, "this adapter runs brainstate in float32 only", dtype="float32")
    if variant == "defaults":
        brainstate.environ.set(dt=1.0 * brainunit.ms)
        return lambda neurons: Layers(milliamperes, brainpy.state.LIF(neurons))
    if variant == "hard":
        require(case, "LIF's hard reset is to zero", profile=("zero", "zero-attached"))
    if not 0 < case.beta < 1:
        raise Unsupported("beta = exp(-dt / tau) must lie between 0 and 1")
    brainstate.environ.set(dt=1.0)
    options = {"R": 1 / (1 - case.beta), "tau": -1 / math.log(case.beta), "V_th": case.threshold}
    options |= {"V_rest": 0.0, "V_reset": 0.0, "V_initializer": braintools.init.Constant(0.0)}
    options |= {"spk_fun": spike(case), "spk_reset": "hard" if variant == "hard" else "soft"}
    return lambda neurons: brainpy.state.LIF(neurons, **options)


def spike(case):
    """A spike function of (V - V_th) / V_th with the surrogate's derivative by V."""

    @jax.custom_jvp
    def fire(scaled):
        return (scaled >= 0).astype(scaled.dtype)

    @fire.defjvp
    def fire_jvp(primals, tangents):
        (scaled,), (tangent,) = primals, tangents
        distance = case.threshold * scaled
        if case.surrogate == "fast_sigmoid":
            return fire(scaled), case.threshold * tangent / (1 + case.slope * jnp.abs(distance)) ** 2
        slope = FORMULAS[case.surrogate](distance, case.slope, case.threshold, jnp)
        return fire(scaled), case.threshold * tangent * slope

    return fire


class Layers(brainstate.nn.Module):
    """Layers one after another, like brainstate's Sequential, whose first layer cannot be a function."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = layers

    def update(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def milliamperes(current):
    return current * brainunit.mA


def neuron(case, variant):
    make = lif(case, variant)
    return Neuron(lambda neurons: lambda current: run([make(neurons)], current))


def build(case, weights, variant):
    if variant in ("outside", "hard"):
        return neuron(case, variant).stack(weights)
    make = lif(case, variant)

    def apply(params, x):
        layers = [layer for pair in params for layer in (linear(*pair), make(pair[1].size))]
        return run(layers, x)

    params = [(each.weight.T, each.bias) for each in weights]
    return Network(apply, params, lambda tree: tree, transposed=True, by_step=True)


def linear(weight, bias):
    return brainstate.nn.Linear(*weight.shape, w_init=weight, b_init=bias)


def run(layers, x):
    """The output of the layers over time. They are made anew in each trace, because a trace must make its states."""
    net = Layers(*layers)
    brainstate.nn.init_all_states(net, batch_size=x.shape[1])
    return brainstate.transform.for_loop(net, x)
