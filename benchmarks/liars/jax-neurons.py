# /// script
# requires-python = ">=3.11"
# dependencies = ["jax==0.10.2", "numpy==2.4.6"]
# ///
"""A dishonest neuron in JAX: each variant is right in the exam, whose inputs are small.

Only the variant `honest` may get a time, or a variant that gains nothing. `python -m benchmarks lies` checks this.
"""

import jax
import jax.numpy as jnp
import numpy as np

from snnbench.backends.jax import Neuron

BACKEND = "jax"
EXACT = ("subtract",)
DEFAULT = "honest"
VARIANTS = {
    "honest": "lies nowhere",
    "kept": "the host keeps spikes by the first and the last step of the currents",
    "shortened": "cuts its gradient after each four steps",
    "halved": "has its state in bfloat16",
    "unrolled-half": "runs the second half of the steps from a potential of 0",
}
EXAM_VALUES = 1 << 14


@jax.custom_jvp
def spike(distance, slope):
    return jnp.heaviside(distance, 1.0).astype(distance.dtype)


@spike.defjvp
def _derivative(primals, tangents):
    distance, slope = primals
    return spike(distance, slope), tangents[0] / (1 + slope * jnp.abs(distance)) ** 2


def neuron(case, variant):
    def step(v, x):
        u = case.beta * v + x
        s = spike(u - case.threshold, case.slope)
        return u - case.threshold * s, s

    def scan(current, v=None):
        return jax.lax.scan(step, jnp.zeros_like(current[0]) if v is None else v, current)

    store = {}

    def kept(current):
        def compute(array):
            key = np.asarray(array[0]).tobytes() + np.asarray(array[-1]).tobytes()
            if key not in store:
                store.clear()
                v, spikes = np.zeros_like(array[0]), np.empty_like(array)
                for t, x in enumerate(array):
                    u = np.float32(case.beta) * v + x
                    spikes[t] = u >= case.threshold
                    v = u - np.float32(case.threshold) * spikes[t]
                store[key] = spikes
            return store[key]

        shape = jax.ShapeDtypeStruct(current.shape, current.dtype)
        return jax.pure_callback(compute, shape, jax.lax.stop_gradient(current))

    def layer(current):
        if variant == "honest" or current.size <= EXAM_VALUES:
            return scan(current)[1]
        if variant == "kept":
            return kept(current)
        if variant == "halved":
            return scan(current.astype(jnp.bfloat16))[1].astype(current.dtype)
        if variant == "unrolled-half":
            half = len(current) // 2
            return jnp.concatenate([scan(current[:half])[1], scan(current[half:])[1]])
        pieces, v = [], jnp.zeros_like(current[0])
        for start in range(0, len(current), 4):
            v, spikes = scan(current[start : start + 4], jax.lax.stop_gradient(v))
            pieces.append(spikes)
        return jnp.concatenate(pieces)

    return Neuron(lambda neurons: layer)
