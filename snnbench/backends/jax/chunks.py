"""A network of JAX on a sequence that comes in chunks, with the state of its neurons carried from one to the next.

The chunks are the steps of an outer `jax.lax.scan`, so each pass is one program. If the gradient is cut, training takes
the gradient of each chunk within that scan: XLA then keeps the values of one chunk at a time, and the gradients of
parameters add up. The input, the cotangent and the spikes are whole in both.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import NO_STATE, Build
from snnbench.backends.jax.network import Network
from snnbench.backends.jax.session import Session
from snnbench.cases.problem import Problem


class ChunkSession(Session):
    """A network on one problem, whose sequence comes in chunks."""

    def __init__(self, build: Build, variant: Variant, problem: Problem, device: Any) -> None:
        self._case, self._time_axis = problem.case, variant.order.index("T")
        self.retains = not self._case.cuts_gradient
        super().__init__(lambda *given: self._in_chunks(build(*given)), variant, problem, device)

    def _in_chunks(self, network: Network) -> Network:
        """The network as a function of the whole input. Raises Unsupported."""
        if (run := network.chunk) is None:
            raise Unsupported(NO_STATE)
        self._chunk = run

        def apply(params: Any, x: jax.Array) -> jax.Array:
            def step(states: Any, chunk: jax.Array) -> Any:
                spikes, states = run(params, chunk, states)
                return jax.lax.stop_gradient(states) if self._case.cuts_gradient else states, spikes

            spikes: jax.Array = self._over_chunks(step, network.start(params, x), x)[1]
            return spikes

        return replace(network, apply=apply)

    def _both(self, params: Any, entering: jax.Array, cotangent: jax.Array) -> Any:
        """Spikes and gradients: if the gradient is cut, those of each chunk right after its forward pass."""
        if not self._case.cuts_gradient:
            return super()._both(params, entering, cotangent)
        run = self._chunk

        def step(carry: Any, parts: Any) -> Any:
            (states, sums), (chunk, arriving) = carry, parts
            if self._with_input:
                spikes, pull, states = jax.vjp(lambda p, x: run(p, x, states), params, chunk, has_aux=True)
            else:
                spikes, pull, states = jax.vjp(lambda p: run(p, chunk, states), params, has_aux=True)
            of_params, *of_input = pull(arriving)
            return (states, jax.tree.map(jnp.add, sums, of_params)), (spikes, of_input)

        before = self.network.start(params, entering), jax.tree.map(jnp.zeros_like, params)
        (_, sums), (spikes, of_input) = self._over_chunks(step, before, (entering, cotangent))
        return spikes, (sums, *of_input)

    def _over_chunks(self, step: Callable[[Any, Any], Any], before: Any, whole: Any) -> Any:
        """The last carry of `step` over the chunks of whole arrays, and its outputs, joined along time.

        A rest of fewer steps than a chunk is a step after the scan.
        """
        axis, length = self._time_axis, jax.tree.leaves(whole)[0].shape[self._time_axis]
        border = length - length % self._case.chunk_steps
        chunks = jax.tree.map(lambda each: self._split(jax.lax.slice_in_dim(each, 0, border, axis=axis)), whole)
        carry, outputs = jax.lax.scan(step, before, chunks)
        outputs = jax.tree.map(self._joined, outputs)
        if border == length:
            return carry, outputs
        rest = jax.tree.map(lambda each: jax.lax.slice_in_dim(each, border, length, axis=axis), whole)
        carry, last = step(carry, rest)
        return carry, jax.tree.map(lambda *parts: jnp.concatenate(parts, axis), outputs, last)

    def _split(self, whole: jax.Array) -> jax.Array:
        """The chunks, one after another along a new first axis."""
        axis, steps = self._time_axis, self._case.chunk_steps
        shape = (*whole.shape[:axis], whole.shape[axis] // steps, steps, *whole.shape[axis + 1 :])
        return jnp.moveaxis(whole.reshape(shape), axis, 0)

    def _joined(self, chunks: jax.Array) -> jax.Array:
        """The whole of the chunks."""
        axis, moved = self._time_axis, jnp.moveaxis(chunks, 0, self._time_axis)
        return moved.reshape(*moved.shape[:axis], -1, *moved.shape[axis + 2 :])
