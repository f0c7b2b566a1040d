# /// script
# requires-python = ">=3.11"
# dependencies = ["spyx==1.0.0", "jax==0.10.2", "flax==0.12.8", "numpy==2.4.6"]
#
# [tool.snnbench]
# cuda = ["jax[cuda13]==0.10.2"]
# ///
"""Spyx 1.x on flax nnx: `CuBaLIF` with alpha = 0, whose reset is taken off before the decay; `LIF` takes it off after.

It fires from the potential of the step before, so its output is one step late: the harness gives it one more step of
input. A second layer would get one more step of bias too, which is another network.
Docs: https://spyx.readthedocs.io/en/latest/
"""

import spyx
import spyx.nn
from flax import nnx

from snnbench.adapter import require
from snnbench.backends.jax import Network

BACKEND = "jax"
LATENCY = 1
VARIANTS = {
    "linear-outside": "the linear layer on the whole sequence, the neuron scanned by spyx.nn.run",
    "run": "Sequential(Linear, CuBaLIF) scanned by spyx.nn.run, as documented",
}


def build(case, weights, variant):
    require(case, "CuBaLIF subtracts, with the gradient attached", profile="subtract")
    require(case, "a later layer would get its input one step late", layers=1)
    require(case, "superspike is the fast sigmoid", surrogate="fast_sigmoid")
    require(case, "this adapter runs float32", dtype="float32")
    (given,) = weights
    rngs = nnx.Rngs(0)
    linear = nnx.Linear(case.neurons, case.neurons, rngs=rngs)
    linear.kernel[...] = given.weight.T
    linear.bias[...] = given.bias
    neuron = spyx.nn.CuBaLIF(
        (case.neurons,),
        alpha=0.0,
        beta=case.beta,
        threshold=case.threshold,
        activation=spyx.axn.superspike(k=case.slope),
        rngs=rngs,
    )
    model = spyx.nn.Sequential(linear, neuron)
    # beta and alpha are parameters too; training them would be more work than asked for
    graph, params, fixed = nnx.split(model, lambda path, _: path[-1] in ("kernel", "bias"), ...)

    def run(params, x):
        return spyx.nn.run(nnx.merge(graph, params, fixed), x)[0]

    def linear_outside(params, x):
        linear, neuron = nnx.merge(graph, params, fixed).layers
        return spyx.nn.run(neuron, linear(x))[0]

    def linears(tree):
        (layer,) = (leaf for leaf in nnx.to_pure_dict(tree)["layers"].values())
        return [(layer["kernel"], layer["bias"])]

    return Network({"run": run, "linear-outside": linear_outside}[variant], params, linears, transposed=True)
