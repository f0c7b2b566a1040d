# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "jaxpike==0.1.4", "jax==0.10.2", "equinox==0.13.8", "jaxtyping==0.3.11", "optax==0.2.8", "numpy==2.4.6",
# ]
#
# [tool.snnbench]
# api = 2
# cuda = ["jax[cuda13]==0.10.2"]
# ///
"""jaxpike: a `Sequential` of `Dense` and `LIF` layers on Equinox, run over time by `unroll`.

LIF multiplies its current by 1 - alpha, so the weights are divided by 1 - alpha.
Docs: https://abdurrezzak.github.io/jaxpike/
"""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxpike
from jaxpike.graph import INPUT, Graph

from snnbench.adapter import Rule, Unsupported, require
from snnbench.backends.jax import Network, Neuron, Weights
from snnbench.cases.surrogate import FORMULAS

BACKEND = "jax"
VARIANTS = {
    "unroll": "LIF by unroll, which by default computes 8 time steps in each turn of its loop",
    "unroll-1": "LIF by unroll, with one time step in each turn of its loop",
    "checkpointed": "LIF by unroll_checkpointed, whose backward pass computes the steps of each chunk again",
    "parallel": "LinearLIF, which has no reset, by unroll_parallel, an associative scan over time",
    "defaults": "Sequential(Dense, LIF()) by unroll, all other arguments at their defaults",
}
COMPILES = {"unroll": True, "checkpointed": True}
EXACT = {
    "unroll": ("subtract", "zero-attached"),
    "unroll-1": ("subtract", "zero-attached"),
    "checkpointed": ("subtract", "zero-attached"),
    "parallel": ("none",),
}
RESETS = {
    "unroll": "LIF resets with the gradient attached",
    "unroll-1": "LIF resets with the gradient attached",
    "checkpointed": "LIF resets with the gradient attached",
    "parallel": "LinearLIF has no reset",
}
DEVIATION = {
    "defaults": "tau = 20: a step keeps 0.95 of the potential and adds 0.05 of the input; a surrogate of slope 25"
}
RECURRENT = {"unroll": ("subtract", "zero-attached"), "unroll-1": ("subtract", "zero-attached")}
RUNS = {
    "unroll-1": partial(jaxpike.unroll, scan_unroll=1),
    "checkpointed": jaxpike.unroll_checkpointed,
    "parallel": jaxpike.unroll_parallel,
}
SURROGATES = {"fast_sigmoid": jaxpike.FastSigmoid, "atan": jaxpike.ATan}


def rule(case, variant):
    if variant != "defaults":
        return None
    alpha = math.exp(-1 / 20)
    resets = {"reset": "subtract", "detach_reset": False}
    return Rule(beta=alpha, gain=1 - alpha, threshold=1.0, surrogate="fast_sigmoid", slope=25.0, **resets)


def lif(case, variant):
    """A layer of neurons, which has no size, and the gain of its current."""
    require(case, "jaxpike keeps its state in float32", dtype="float32")
    if variant == "defaults":
        return jaxpike.LIF(), 1.0
    if not math.exp(-1) < case.beta < 1:
        raise Unsupported("alpha = exp(-dt / tau) with tau > dt must lie between 1 / e and 1")
    options = {"tau": -1 / math.log(case.beta), "threshold": case.threshold}
    options["surrogate"] = SURROGATES[case.surrogate](case.slope) if case.surrogate in SURROGATES else own(case)
    layer = jaxpike.LinearLIF(**options) if variant == "parallel" else jaxpike.LIF(reset=case.reset, **options)
    return layer, 1 / (1 - case.beta)


def own(case):
    """A surrogate that jaxpike does not bring, as its base class: a module that is a function of u - threshold."""

    @jax.custom_jvp
    def spike(distance):
        return jnp.asarray(distance > 0, distance.dtype)

    @spike.defjvp
    def spike_jvp(primals, tangents):
        (distance,), (tangent,) = primals, tangents
        slope = FORMULAS[case.surrogate](distance, case.slope, case.threshold, jnp)
        return spike(distance), tangent * slope

    class Own(jaxpike.surrogate.Surrogate):
        def __call__(self, distance):
            return spike(distance)

    return Own()


def neuron(case, variant):
    layer, gain = lif(case, variant)
    run, net = RUNS.get(variant, jaxpike.unroll), jaxpike.Sequential(layer)
    return Neuron(lambda neurons: lambda current: run(net, current)[0], gain)


def build(case, weights, variant):
    layer, gain = lif(case, variant)
    run = RUNS.get(variant, jaxpike.unroll)
    if case.is_recurrent:
        return graph(case, weights, layer, gain, run)
    net = jaxpike.Sequential(*[each for given in weights for each in (dense(given, gain), layer)])
    # log_tau is a parameter too, but its gradient would be extra work
    is_trained = jaxpike.Sequential(*[isinstance(each, jaxpike.Dense) for each in net.layers])
    params, fixed = eqx.partition(net, is_trained)

    def linears(tree):
        return [(each.weight, each.bias) for each in tree.layers[::2]]

    def apply(params, x):
        return run(eqx.combine(params, fixed), x)[0]

    return Network(apply, params, linears, gain)  # unroll takes Dense layers out of its loop over time


def graph(case, weights, lif, gain, run):
    """A Graph, in which the neurons of a recurrent layer have an edge through a Dense layer back to themselves."""
    nodes, edges, before = {}, [], INPUT
    for number, layer in enumerate(weights):
        linear, neurons, own = f"linear {number}", f"neurons {number}", f"own {number}"
        nodes |= {linear: dense(layer, gain), neurons: lif}
        edges += [(before, linear), (linear, neurons)]
        if layer.recurrent is not None:
            nodes[own] = dense(Weights(layer.recurrent, jnp.zeros_like(layer.bias)), gain)
            edges += [(neurons, own), (own, neurons)]
        before = neurons
    net = Graph(nodes, edges, output=before)

    def trained(tree):
        linears = [tree.nodes[f"linear {number}"] for number in range(len(weights))]
        own = [tree.nodes.get(f"own {number}") for number in range(len(weights))]
        pairs = zip(linears, own, strict=True)
        return [(each.weight, each.bias, *([back.weight] if back else [])) for each, back in pairs]

    fixed = jax.tree.map(lambda _: False, net)
    is_trained = eqx.tree_at(lambda tree: sum(trained(tree), ()), fixed, replace_fn=lambda _: True)
    params, fixed = eqx.partition(net, is_trained)
    return Network(lambda params, x: run(eqx.combine(params, fixed), x)[0], params, trained, gain)


def dense(layer, gain):
    """A Dense layer with the harness's weights times `gain`."""
    outputs, inputs = layer.weight.shape
    drawn = jaxpike.Dense(inputs, outputs, key=jax.random.key(0))
    return eqx.tree_at(lambda each: (each.weight, each.bias), drawn, (layer.weight * gain, layer.bias * gain))
