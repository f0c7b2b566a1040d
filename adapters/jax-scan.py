# /// script
# requires-python = ">=3.11"
# dependencies = ["jax==0.10.2", "numpy==2.4.6"]
#
# [tool.snnbench]
# cuda = ["jax[cuda13]==0.10.2"]
# ///
"""Plain JAX: a three-line neuron in `jax.lax.scan`, compiled by XLA.

Docs: https://docs.jax.dev/en/latest/_autosummary/jax.lax.scan.html
"""

from functools import partial

import jax
import jax.numpy as jnp

from snnbench.backends.jax import Neuron, trained
from snnbench.cases.surrogate import FORMULAS

BACKEND = "jax"
VARIANTS = {
    "default": "lax.scan, a step in each iteration of XLA's loop",
    "unroll-4": "lax.scan(unroll=4), four steps in each iteration",
    "unroll-16": "lax.scan(unroll=16), 16 steps in each iteration",
}
OWN_DECAYS = True
EXACT = ("subtract", "zero", "subtract-detached", "zero-attached", "none")
SYNAPTIC = ("subtract", "zero", "subtract-detached", "zero-attached", "none")
RECURRENT = ("subtract", "zero", "subtract-detached", "zero-attached", "none")
TRAINED = ("beta", "threshold")
CHUNKS = True


def neuron(case, variant):
    @jax.custom_jvp
    def spike(distance):
        return (distance >= 0).astype(distance.dtype)

    @spike.defjvp
    def spike_jvp(primals, tangents):
        (distance,), (tangent,) = primals, tangents
        if case.surrogate == "fast_sigmoid":
            return spike(distance), tangent / (1 + case.slope * jnp.abs(distance)) ** 2
        return spike(distance), tangent * FORMULAS[case.surrogate](distance, case.slope, case.threshold, jnp)

    def step_with(beta, threshold):
        def step(v, x):
            u = beta * v + x
            s = spike(u - threshold)
            if case.reset == "none":
                return u, s
            reset_spike = jax.lax.stop_gradient(s) if case.detach_reset else s
            v = u - threshold * reset_spike if case.reset == "subtract" else u * (1 - reset_spike)
            return v, s

        def synaptic_step(state, x):
            v, i = state
            i = case.alpha * i + x
            v, s = step(v, i)
            return (v, i), s

        return synaptic_step if case.alpha else step

    def start(current):
        nothing = jnp.zeros_like(current[0])
        return (nothing, nothing) if case.alpha else nothing

    unroll = {"unroll-4": 4, "unroll-16": 16}.get(variant, 1)

    def layer(current, beta=case.beta, threshold=case.threshold):
        return jax.lax.scan(step_with(beta, threshold), start(current), current, unroll=unroll)[1]

    def chunk(current, state):
        state, spikes = jax.lax.scan(step_with(case.beta, case.threshold), state, current, unroll=unroll)
        return spikes, state

    def recurrent(current, own, beta=case.beta, threshold=case.threshold):
        one_step = step_with(beta, threshold)

        def recurrent_step(carry, x):
            state, spikes = carry
            state, spikes = one_step(state, x + spikes @ own.T)
            return (state, spikes), spikes

        before = start(current), jnp.zeros_like(current[0])
        return jax.lax.scan(recurrent_step, before, current, unroll=unroll)[1]

    if case.trained_constants:
        return Neuron(lambda neurons: layer, recurrent=lambda neurons: recurrent, constants=partial(trained, case))
    return Neuron(lambda neurons: layer, recurrent=lambda neurons: recurrent, start=start, chunk=chunk)
