# /// script
# requires-python = ">=3.11"
# dependencies = ["spyx==1.0.0", "jax==0.10.2", "flax==0.12.8", "numpy==2.4.6"]
#
# [tool.snnbench]
# cuda = ["jax[cuda13]==0.10.2"]
# ///
"""Spyx 1.x on flax nnx: `CuBaLIF` with alpha = 0, which subtracts the threshold before the decay.

`LIF` subtracts it after the decay. Both fire from the potential of the step before, so their output is one step late:
the harness gives them one more step of input. A second layer would also get one more step of bias, which makes it
another network.
Docs: https://spyx.readthedocs.io/en/latest/
"""

from dataclasses import replace

import spyx
import spyx.experimental
import spyx.nn
from flax import nnx

from snnbench.adapter import require, rule_of
from snnbench.backends.jax import Network, Neuron

BACKEND = "jax"
LATENCY = {"linear-outside": 1, "run": 1, "defaults": 1}
RESETS = {
    "linear-outside": "CuBaLIF subtracts, with the gradient attached",
    "run": "CuBaLIF subtracts, with the gradient attached",
    "psu": "PSU_LIF has no reset",
}
DEVIATION = {"defaults": "the reset subtracts the undecayed threshold; a surrogate of slope 25"}
EXACT = {"linear-outside": ("subtract",), "run": ("subtract",), "psu": ("none",)}
VARIANTS = {
    "linear-outside": "Linear on the whole sequence, then CuBaLIF scanned by spyx.nn.run",
    "run": "Sequential(Linear, CuBaLIF) scanned by spyx.nn.run, as documented",
    "defaults": "Sequential(Linear, LIF(shape, beta)), all other arguments at their defaults",
    "psu": "experimental.PSU_LIF, which has no reset, in parallel over time by an associative scan",
}


def rule(case, variant):
    if variant != "defaults":
        return None
    neuron = replace(rule_of(case), threshold=1.0, detach_reset=False, surrogate="fast_sigmoid", slope=25.0)
    return neuron.resetting_after_decay()


def neurons_of(case, variant, rngs):
    require(case, "a second layer would get its input one step late", sites=1)
    require(case, "this adapter supports float32 and 16-bit formats only", dtype=("float32", "bfloat16", "float16"))
    shape = (case.neurons,)
    if variant == "defaults":
        return spyx.nn.LIF(shape, beta=case.beta, rngs=rngs)
    require(case, "this adapter sets superspike only, the fast sigmoid", surrogate="fast_sigmoid")
    options = {"threshold": case.threshold, "activation": spyx.axn.superspike(k=case.slope), "rngs": rngs}
    if variant == "psu":
        return spyx.experimental.PSU_LIF(shape, beta=case.beta, **options)
    return spyx.nn.CuBaLIF(shape, alpha=0.0, beta=case.beta, **options)


def neuron(case, variant):
    layer = neurons_of(case, variant, nnx.Rngs(0))
    if variant == "psu":
        return Neuron(lambda neurons: layer.parallel)
    return Neuron(lambda neurons: lambda current: spyx.nn.run(layer, current)[0])


def build(case, weights, variant):
    rngs, layer_weights = nnx.Rngs(0), weights[0]
    neurons, dtype = neurons_of(case, variant, rngs), layer_weights.weight.dtype
    linear = nnx.Linear(case.neurons, case.neurons, dtype=dtype, param_dtype=dtype, rngs=rngs)
    linear.kernel[...] = layer_weights.weight.T
    linear.bias[...] = layer_weights.bias
    model = spyx.nn.Sequential(linear, neurons)
    # beta and alpha are parameters too, but their gradients would be extra work
    graph, params, fixed = nnx.split(model, lambda path, _: path[-1] in ("kernel", "bias"), ...)

    def run(params, x):
        return spyx.nn.run(nnx.merge(graph, params, fixed), x)[0]

    def linear_outside(params, x):
        linear, neuron = nnx.merge(graph, params, fixed).layers
        return spyx.nn.run(neuron, linear(x))[0]

    def parallel(params, x):
        linear, neuron = nnx.merge(graph, params, fixed).layers
        return neuron.parallel(linear(x))

    def linears(tree):
        (layer,) = (leaf for leaf in nnx.to_pure_dict(tree)["layers"].values())
        return [(layer["kernel"], layer["bias"])]

    apply = {"run": run, "defaults": run, "linear-outside": linear_outside, "psu": parallel}[variant]
    return Network(apply, params, linears, transposed=True)
