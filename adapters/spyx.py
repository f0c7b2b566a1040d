# /// script
# requires-python = ">=3.11"
# dependencies = ["spyx==1.0.0", "jax==0.10.2", "flax==0.12.8", "numpy==2.4.6"]
#
# [tool.snnbench]
# api = 2
# cuda = ["jax[cuda13]==0.10.2"]
# nir = ["nir==1.0.8"]
# ///
"""Spyx 1.x on flax nnx: `CuBaLIF` with alpha = 0, which subtracts the threshold before the decay.

`LIF` subtracts it after the decay. Both fire from the potential of the step before, so their output is one step late:
the harness gives them one more step of input. A second layer would also get one more step of bias, which makes it
another network.
Docs: https://spyx.readthedocs.io/en/latest/
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import spyx
import spyx.experimental
import spyx.nn
from flax import nnx

from snnbench.adapter import require, rule_of
from snnbench.backends.jax import Network
from snnbench.cases.surrogate import FORMULAS

BACKEND = "jax"
LATENCY = {"linear-outside": 1, "run": 1, "parallel-reset": 1, "defaults": 1}
RESETS = {
    "linear-outside": "CuBaLIF subtracts, with the gradient attached",
    "run": "CuBaLIF subtracts, with the gradient attached",
    "psu": "PSU_LIF has no reset",
}
DEVIATION = {
    "parallel-reset": "3 rounds find the resets of a few steps only, so later spikes and gradients differ",
    "defaults": "the reset subtracts the undecayed threshold; a surrogate of slope 25",
}
EXACT = {"linear-outside": ("subtract",), "run": ("subtract",), "psu": ("none",)}
SYNAPTIC = {"linear-outside": ("subtract",), "run": ("subtract",)}
RECURRENT = {"linear-outside": ("subtract",), "run": ("subtract",)}
TRAINED = {"linear-outside": ("beta",), "run": ("beta",)}
VARIANTS = {
    "linear-outside": "Linear on the whole sequence, then CuBaLIF scanned by spyx.nn.run",
    "run": "Sequential(Linear, CuBaLIF) scanned by spyx.nn.run, as documented",
    "defaults": "Sequential(Linear, LIF(shape, beta)), all other arguments at their defaults",
    "psu": "experimental.PSU_LIF, which has no reset, in parallel over time by an associative scan",
    "parallel-reset": "experimental.ParallelResetLIF with a shifted threshold, in 3 rounds of associative scans",
}


def rule(case, variant):
    if variant != "defaults":
        return None
    neuron = replace(rule_of(case), threshold=1.0, detach_reset=False, surrogate="fast_sigmoid", slope=25.0)
    return neuron.resetting_after_decay()


def build(case, weights, variant):
    require(case, "a second layer would get its input one step late", sites=1)
    require(case, "this adapter supports float32 and 16-bit formats only", dtype=("float32", "bfloat16", "float16"))
    rngs, surrogate = nnx.Rngs(0), activation(case)
    shape, options = (case.neurons,), {"threshold": case.threshold, "activation": surrogate, "rngs": rngs}
    if variant == "defaults":
        neuron = spyx.nn.LIF(shape, beta=case.beta, rngs=rngs)
    elif variant == "parallel-reset":
        require(case, "ParallelResetLIF subtracts, with the gradient attached", profile="subtract")
        neuron = spyx.experimental.ParallelResetLIF(shape, beta=case.beta, rngs=rngs, **shifted(case))
    elif variant == "psu":
        neuron = spyx.experimental.PSU_LIF(shape, beta=case.beta, **options)
    elif case.is_recurrent:
        neuron = spyx.nn.RCuBaLIF(shape, alpha=case.alpha, beta=case.beta, **options)
        neuron.recurrent_w = nnx.Param(weights[0].recurrent.T)
    else:
        neuron = spyx.nn.CuBaLIF(shape, alpha=case.alpha, beta=case.beta, **options)
    layers = [*(linear_of(layer, rngs) for layer in weights), neuron]
    if case.trained_each == "neuron":
        neuron.beta = nnx.Param(jnp.full(shape, case.beta))
    # beta and alpha are parameters too, but where they are not trained, their gradients would be extra work
    of_linears = ("kernel", "bias", "recurrent_w")
    trained = (*of_linears, *case.trained_constants)
    graph, params, fixed = nnx.split(spyx.nn.Sequential(*layers), lambda path, _: path[-1] in trained, ...)

    def run(params, x):
        return spyx.nn.run(nnx.merge(graph, params, fixed), x)[0]

    def linear_outside(params, x):
        *linears, neuron = nnx.merge(graph, params, fixed).layers
        for linear in linears:
            x = linear(x)
        return neuron.parallel(x) if variant in ("psu", "parallel-reset") else spyx.nn.run(neuron, x)[0]

    def linears(tree):
        of_layers = nnx.to_pure_dict(tree).get("layers", {}).values()
        arrays = {name: array for of_layer in of_layers for name, array in of_layer.items()}
        return [tuple(arrays[name] for name in of_linears if name in arrays)] if arrays else []

    def constants(tree):
        of_layers = nnx.to_pure_dict(tree).get("layers", {}).values()
        return [of_layer[name] for of_layer in of_layers for name in case.trained_constants if name in of_layer]

    apply = run if variant in ("run", "defaults") else linear_outside
    return Network(apply, params, linears, transposed=True, by_step=apply is run, constants=constants)


def activation(case):
    """The spike function with the case's surrogate gradient."""
    if case.surrogate == "fast_sigmoid":
        return spyx.axn.superspike(k=case.slope)
    return spyx.axn.custom(lambda v: FORMULAS[case.surrogate](v, case.slope, case.threshold, jnp), spyx.axn.heaviside)


def shifted(case):
    """Options of ParallelResetLIF, whose reset acts after the decay: its threshold is shifted by the decay.

    The spike function gets v - beta * threshold, and compares that with the rest of the threshold.
    """
    rest = (1 - case.beta) * case.threshold
    spike = spyx.axn.custom(
        bwd=lambda v: FORMULAS[case.surrogate](v - rest, case.slope, case.threshold, jnp),
        fwd=lambda v: spyx.axn.heaviside(v - rest),
    )
    return {"threshold": case.beta * case.threshold, "activation": spike}


def linear_of(layer, rngs):
    (outputs, inputs), dtype = layer.weight.shape, layer.weight.dtype
    linear = nnx.Linear(inputs, outputs, dtype=dtype, param_dtype=dtype, rngs=rngs)
    linear.kernel[...], linear.bias[...] = layer.weight.T, layer.bias
    return linear


def from_nir(path, dt, batch):
    import nir
    from spyx.nir import from_nir as import_graph

    graph = nir.read(path)

    def run(spikes):  # the importer itself runs the network; it has the channels last
        _, output = import_graph(graph, spikes.transpose(0, 1, 3, 4, 2) if spikes.ndim == 5 else spikes, dt)
        return output.transpose(0, 1, 4, 2, 3) if output.ndim == 5 else output

    given = next(node for node in graph.nodes.values() if isinstance(node, nir.Input))
    run(jax.numpy.zeros((1, batch, *given.output_type["output"])))  # it refuses a graph here, or never
    return run


def to_nir(layers, dt, path):
    import nir
    import numpy as np
    from spyx.nir import to_nir as export

    rngs, modules = nnx.Rngs(0), []
    for weight, bias, case in layers:
        outputs, inputs = weight.shape
        linear = nnx.Linear(inputs, outputs, rngs=rngs)
        linear.kernel[...], linear.bias[...] = weight.T, bias
        decays = {"beta": case.beta} | ({"alpha": case.alpha} if case.alpha else {})
        neurons = spyx.nn.CuBaLIF if case.alpha else spyx.nn.LIF
        modules += [linear, neurons((outputs,), **decays, threshold=case.threshold, rngs=rngs)]
    network = spyx.nn.Sequential(*modules)
    ends = {"input": np.array([layers[0][0].shape[1]])}, {"output": np.array([len(layers[-1][1])])}
    nir.write(path, export(network, *ends, dt=dt))
    return lambda spikes: spyx.nn.run(network, spikes)[0]
