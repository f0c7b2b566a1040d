# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "spyx==0.1.20", "dm-haiku==0.0.17", "jax==0.10.2", "jax-tqdm==0.4.0", "nir==1.0.8", "optax==0.2.8",
#     "numpy==2.4.6",
# ]
#
# [tool.snnbench]
# api = 2
# cuda = ["jax[cuda13]==0.10.2"]
# ///
"""Spyx 0.1.20, the last release on Haiku: `LIF` unrolled by `hk.dynamic_unroll`, with a shifted threshold.

LIF computes v' = beta * v + x - threshold * s, so its reset does not decay, and CuBaLIF resets twice. But users can set
the spike function (`spyx.axn.custom`). A LIF with the threshold beta * threshold subtracts beta * threshold. Its spike
function gets v - beta * threshold, and compares that with (1 - beta) * threshold.
LIF fires from the potential of the step before, so its output is one step late: the harness gives it one more step of
input. A second layer would also get one more step of bias, which makes it another network.
Docs: https://spyx.readthedocs.io/en/latest/ (of 1.x; its page on migrating from Haiku shows the old way)
"""

from dataclasses import replace

import haiku as hk
import jax
import jax.numpy as jnp
import jmp
import spyx
import spyx.nn

from snnbench.adapter import Unsupported, require, rule_of
from snnbench.backends.jax import Network
from snnbench.cases.surrogate import FORMULAS

BACKEND = "jax"
VARIANTS = {
    "documented": "BatchApply(Linear), LIF by dynamic_unroll(time_major=False, unroll=32), as in Spyx's examples",
    "time-major": "BatchApply(Linear), LIF by dynamic_unroll with its defaults: time_major=True, unroll=1",
    "defaults": "BatchApply(Linear), LIF(shape, beta) by dynamic_unroll, all other arguments at their defaults",
}
ORDER = {"documented": "BTN"}
LATENCY = 1
EXACT = {"documented": ("subtract",), "time-major": ("subtract",)}
DEVIATION = {"defaults": "the reset subtracts the undecayed threshold; a surrogate of slope 25"}
RESETS = "LIF subtracts, with the gradient attached"


def rule(case, variant):
    if variant != "defaults":
        return None
    neuron = replace(rule_of(case), threshold=1.0, detach_reset=False, surrogate="fast_sigmoid", slope=25.0)
    return neuron.resetting_after_decay()


def shifted(case):
    """Options of LIF that shift its threshold by the decay, with the spike function that compares with the rest."""
    rest = (1 - case.beta) * case.threshold
    spike = spyx.axn.custom(
        bwd=lambda v: FORMULAS[case.surrogate](v - rest, case.slope, case.threshold, jnp),
        fwd=lambda v: spyx.axn.heaviside(v - rest),
    )
    return {"threshold": case.beta * case.threshold, "activation": spike}


def build(case, weights, variant):
    require(case, "a second layer would get its input one step late", sites=1)
    require(case, "this adapter supports float32 and 16-bit formats only", dtype=("float32", "bfloat16", "float16"))
    if not 0 < case.beta <= 1:
        raise Unsupported("beta must be above 0 and at most 1: LIF draws a beta of 0 at random")
    policy = jmp.get_policy(f"params={case.dtype},compute={case.dtype},output={case.dtype}")
    hk.mixed_precision.set_policy(hk.Linear, policy)  # as in the published half precision of Spyx; the state is float32
    loop = {"time_major": False, "unroll": 32} if variant == "documented" else {}

    def network(x):
        current = hk.BatchApply(hk.Linear(case.neurons))(x) if weights else x
        options = {} if variant == "defaults" else shifted(case)
        core = hk.DeepRNN([spyx.nn.LIF((case.neurons,), beta=case.beta, **options)])
        return hk.dynamic_unroll(core, current, core.initial_state(case.batch), **loop)[0]

    transformed = hk.without_apply_rng(hk.transform(network))
    one_step = jax.numpy.zeros((case.batch, 1, case.entering) if loop else (1, case.batch, case.entering))
    initial_params = transformed.init(jax.random.PRNGKey(case.seed), one_step)
    # beta is a parameter too, but its gradient would be extra work
    linear, neuron = hk.data_structures.partition(lambda module, name, value: name in ("w", "b"), initial_params)
    params = {module: {"w": layer.weight.T, "b": layer.bias} for module, layer in zip(linear, weights, strict=True)}

    def apply(params, x):
        return transformed.apply(hk.data_structures.merge(params, neuron), x)

    return Network(apply, params, lambda tree: [(one["w"], one["b"]) for one in tree.values()], transposed=True)
