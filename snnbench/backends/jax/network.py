"""The network and the neuron that an adapter for JAX builds, and the weights that it gets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from snnbench.adapter.refusal import Unsupported
from snnbench.backends.jax.operations import Operations
from snnbench.backends.operations import NetworkParts
from snnbench.cases.case import CONSTANTS, Case

Chunk = Callable[[Any, jax.Array, Any], tuple[jax.Array, Any]]
"""A function of parameters, the input of some steps and the states before them, to spikes and the states after them."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The harness's weight [N_out, N_in] and bias [N_out] of one layer, on the case's device in its dtype."""

    weight: jax.Array
    bias: jax.Array
    recurrent: jax.Array | None = None


def trained(case: Case, neurons: int) -> dict[str, jax.Array]:
    """The trained constants of a layer of so many neurons, by name: one number each, or one a neuron."""
    shape = (neurons,) if case.trained_each == "neuron" else ()
    return {name: jnp.full(shape, getattr(case, name), case.dtype) for name in case.trained_constants}


@dataclass(frozen=True, slots=True)
class Network:
    """The network that an adapter for JAX builds.

    `apply(params, input)` gives the spikes. `params` holds only the weights and biases to differentiate.
    `linears(params)` picks (weight, bias) of each layer out of them or out of their gradients, and a recurrent layer's
    weights of its own spikes as a third; the values are the harness's times `gain`. `constants(params)` picks the
    case's trained constants, those of the first layer first. `transposed` says that weights are kept as [N_in, N_out].
    Without linear layers the input is currents, and the harness hands them over times `gain`. A network of `operations`
    has their parameters as `params`.
    `by_step` says that each time step goes through all layers before the next. `chunk(params, input, states)` runs some
    steps from the states that the steps before left, and gives spikes and states; `start(params, input)` are the states
    before the first step, for inputs like this one.
    """

    apply: Callable[[Any, jax.Array], jax.Array]
    params: Any
    linears: Callable[[Any], Sequence[tuple[jax.Array, jax.Array]]]
    gain: float = 1.0
    transposed: bool = False
    operations: Operations | None = None
    by_step: bool = False
    constants: Callable[[Any], Sequence[jax.Array]] = lambda params: ()
    start: Callable[[Any, jax.Array], Any] = lambda params, x: ()
    chunk: Chunk | None = None

    def without_neurons(self, order: str) -> "Network":
        """The linear layers alone, on inputs in this order of the axes T, B and N: each neuron is the identity.

        Raises Unsupported for a network without linear layers.
        """
        if not self.linears(self.params):
            raise Unsupported("without linear layers nothing is left beside the neurons")
        time_axis, neuron_axis = order.index("T"), order.index("N")

        def layers(params: Any, x: jax.Array) -> jax.Array:
            for weight, bias in self.linears(params):
                x = x @ (weight if self.transposed else weight.T) + bias
            return x

        def apply(params: Any, x: jax.Array) -> jax.Array:
            if self.by_step:
                _, outputs = jax.lax.scan(
                    lambda _, step: (None, layers(params, step)), None, jnp.moveaxis(x, time_axis, 0)
                )
                return jnp.moveaxis(outputs, 0, time_axis)
            return jnp.moveaxis(layers(params, jnp.moveaxis(x, neuron_axis, -1)), -1, neuron_axis)

        return Network(
            apply,
            self.params,
            self.linears,
            self.gain,
            self.transposed,
            chunk=lambda params, x, states: (apply(params, x), states),
        )


@dataclass(frozen=True, slots=True)
class Neuron:
    """A library's neuron, as an adapter for JAX builds it.

    `layer(neurons)` makes a layer of so many neurons: a pure function of currents [T, B, N], in the adapter's order, to
    spikes of the same shape. It takes the harness's currents times `gain`. `recurrent(neurons)` makes a layer whose
    neurons also get their spikes of the step before: a function of currents and of their weights [N, N] times `gain`.
    `constants(neurons)` are the first values of the case's trained constants by name, and a layer takes them as
    arguments of these names. `chunk(currents, state)` runs a layer on the next steps of a sequence, from the state that
    the steps before left, and gives spikes and the state that it leaves; `start(currents)` is the state before the
    first step, for currents like these.
    """

    layer: Callable[[int], Callable[[jax.Array], jax.Array]]
    gain: float = 1.0
    recurrent: Callable[[int], Callable[[jax.Array, jax.Array], jax.Array]] | None = None
    constants: Callable[[int], Mapping[str, jax.Array]] | None = None
    start: Callable[[jax.Array], Any] = lambda currents: None
    chunk: Callable[[jax.Array, Any], tuple[jax.Array, Any]] | None = None

    def stack(self, weights: Sequence[Weights]) -> Network:
        """Linear layers with these weights, each followed by a layer of neurons. Raises Unsupported."""
        layers = [self._layer(len(each.weight), each.recurrent is not None) for each in weights]

        def apply(params: Any, x: jax.Array) -> jax.Array:
            for (weight, bias, *own), constants, layer in zip(*params, layers, strict=True):
                x = layer(x @ weight.T + bias, *own, **constants)
            return x

        def start(params: Any, x: jax.Array) -> Any:
            return [self.start(jnp.zeros((*x.shape[:2], len(bias)), x.dtype)) for _, bias in params[0]]

        given = [(each.weight, each.bias, each.recurrent) for each in weights]
        linears = [tuple(part * self.gain for part in each if part is not None) for each in given]
        held = [dict(self.constants(len(each.weight)) if self.constants else {}) for each in weights]
        return Network(
            apply,
            (linears, held),
            linears=lambda tree: tree[0],
            gain=self.gain,
            constants=lambda tree: [each[name] for each in tree[1] for name in CONSTANTS if name in each],
            start=start,
            chunk=self._chunk_of_stack(),
        )

    def _chunk_of_stack(self) -> Chunk | None:
        """The stack as a function of a chunk."""
        if (run := self.chunk) is None:
            return None

        def chunk(params: Any, x: jax.Array, states: Any) -> tuple[jax.Array, Any]:
            left = []
            for (weight, bias), state in zip(params[0], states, strict=True):
                x, state = run(x @ weight.T + bias, state)
                left.append(state)
            return x, left

        return chunk

    def _layer(self, neurons: int, is_recurrent: bool) -> Callable[..., jax.Array]:
        """A layer of so many neurons. Raises Unsupported."""
        if not is_recurrent:
            return self.layer(neurons)
        if self.recurrent is None:
            raise Unsupported("this adapter has no recurrent layer for this neuron")
        return self.recurrent(neurons)

    def alone(self, neurons: int) -> Network:
        """A layer of neurons on currents."""
        layer = self.layer(neurons)
        return Network(lambda params, x: layer(x), (), linears=lambda tree: [], gain=self.gain)

    def network(self, plan: NetworkParts, neurons: "Mapping[str, Neuron] | None" = None) -> Network:
        """The operations of a plan, with a layer of neurons at each site, or one of the site's own `neurons`."""
        neurons = neurons or dict.fromkeys(plan.sites, self)
        gains = {name: each.gain for name, each in neurons.items()}
        whole = Operations(plan, lambda site: neurons[site.name]._layer(site.count, site.recurrent), gains)
        return Network(whole.apply, whole.params, linears=lambda tree: [], gain=self.gain, operations=whole)
