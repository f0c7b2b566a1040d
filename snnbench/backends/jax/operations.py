"""A network of operations as a pure function in JAX, with a library's neuron at every site.

Values have time and batch as one axis of images, and then channels, rows and columns. At a site time and batch are axes
of their own again, and all places of all channels are one axis of neurons, in the library's order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from snnbench.backends.operations import NetworkParts, scales
from snnbench.cases.operations import (
    INPUT,
    Attention,
    Average,
    Flatten,
    Integrator,
    Linear,
    Neurons,
    Normalisation,
    Operation,
    Scaling,
    Sum,
)
from snnbench.cases.windows import Convolution, MaximumPool, WindowSum

Layer = Callable[..., jax.Array]
Placed = dict[str, list[jax.Array]]
"""The parameters of each operation, on the device, or their gradients."""


class Operations:
    """The operations of a plan. `apply(params, x)` takes an input in the plan's order, where N is an image.

    `layer(site)` makes the neurons of a site, which take a current times their gain, and their weights [N, N] times the
    gain if they are recurrent. So the gain is in the operation before a site, and in a shortcut of spikes. `scaled` are
    the values with a gain.
    """

    def __init__(self, plan: NetworkParts, layer: Callable[[Neurons], Layer], gains: Mapping[str, float]) -> None:
        self.operations, self.order = plan.operations, plan.order
        self.names = [INPUT, *(operation.name for operation in plan.operations)]
        self.scaled = scales(plan.operations, gains)
        sites = [each for each in plan.operations if isinstance(each, Neurons)]
        self.layers = {each.name: layer(each) for each in sites}
        self.factors = self.scaled | {each.name: gains[each.name] for each in sites if each.recurrent}
        self.params = {
            each.name: [
                parameter * self.factors[each.name] if each.name in self.factors else parameter
                for parameter in plan.parameters[each.name]
            ]
            for each in plan.operations
            if each.parameters
        }

    def in_order(self, tree: Placed) -> list[tuple[jax.Array, float]]:
        """Each parameter, or its gradient, and the number by which the parameter is multiplied."""
        return [(each, self.factors.get(name, 1.0)) for name in self.params for each in tree[name]]

    def apply(self, params: Placed, x: jax.Array) -> jax.Array:
        """The output, its first two axes those of `x`."""
        return self.recorded(params, {}, x)[0]

    def recorded(
        self, params: Placed, zeros: dict[str, jax.Array], x: jax.Array
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        """The output, and each value by name. `zeros` are added to the values of these names."""
        leads = x.shape[:2]
        values: dict[str, jax.Array] = {}

        def put(name: str, value: jax.Array) -> None:
            values[name] = value + zeros[name] if name in zeros else value

        put(INPUT, x.reshape(-1, *x.shape[2:]))
        for operation in self.operations:
            entering = [values[name] for name in operation.of]
            put(operation.name, self._value(operation, params.get(operation.name, []), entering, leads))
        return values[self.names[-1]].reshape(*leads, -1), values

    def _value(
        self, operation: Operation, params: list[jax.Array], entering: list[jax.Array], leads: tuple[int, ...]
    ) -> jax.Array:
        x = entering[0]
        match operation:
            case Convolution():
                kernel, *bias = params
                biases = [each.reshape(-1, *(1,) * len(operation.size)) for each in bias]
                return sum(biases, convolution(operation, x, kernel))
            case Normalisation():
                return _normalised(operation, x, *params)
            case MaximumPool():
                return _maximum(operation, x)
            case WindowSum():
                steps = operation.size, operation.stride, operation.padding
                return _reduced(x, 0.0, lax.add, *steps) / operation.divisor
            case Average():
                return x.mean((2, 3))
            case Attention():
                return _attended(operation, entering, self.scaled.get(operation.name, 1.0))
            case Linear():
                weight, *bias = params
                return sum(bias, x @ weight.T)
            case Flatten():
                return x.reshape(-1, *operation.shape)
            case Scaling():
                weight, *bias = params
                return sum(bias, x * weight)
            case Sum():
                scale = self.scaled.get(operation.name, 1.0)
                first, second = (scale / self.scaled.get(name, 1.0) for name in operation.of)
                return x * first + entering[1] * second if first != 1.0 else x + entering[1] * second
            case Neurons():
                return self._spikes(operation, x, leads, params)
            case Integrator():
                return self._potentials(operation, x, leads)
            case _:
                raise TypeError(f"{operation.name}: a {type(operation).__name__} in JAX is not known here")

    def _potentials(self, operation: Integrator, current: jax.Array, leads: tuple[int, ...]) -> jax.Array:
        def step(carry: Any, x: jax.Array) -> Any:
            synaptic = operation.alpha * carry[0] + x
            total = operation.beta * carry[1] + synaptic
            return (synaptic, total), total

        axis = self.order.replace("N", "").index("T")
        by_step = jnp.moveaxis(current.reshape(*leads, *current.shape[1:]), axis, 0)
        nothing = jnp.zeros_like(by_step[0])
        _, potentials = lax.scan(step, (nothing, nothing), by_step)
        return jnp.moveaxis(potentials, 0, axis).reshape(current.shape)

    def _spikes(
        self, operation: Operation, current: jax.Array, leads: tuple[int, ...], own: list[jax.Array]
    ) -> jax.Array:
        given = self.order.replace("N", "") + "N"
        by_step = current.reshape(*leads, -1).transpose([given.index(axis) for axis in self.order])
        spikes = self.layers[operation.name](by_step, *own).transpose([self.order.index(axis) for axis in given])
        return spikes.reshape(current.shape)


def convolution(operation: Convolution, x: jax.Array, kernel: jax.Array) -> jax.Array:
    """The value of a convolution without its bias."""
    around = [(each, each) for each in operation.padding]
    return lax.conv_general_dilated(x, kernel, operation.stride, around, rhs_dilation=operation.dilation)


def _normalised(operation: Normalisation, x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    if operation.variance is None:
        mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        x = x - mean
    else:
        variance = jnp.full((1, 1, 1, 1), operation.variance, x.dtype)
    return x * (lax.rsqrt(variance + operation.epsilon) * weight[:, None, None]) + bias[:, None, None]


def _attended(operation: Attention, entering: list[jax.Array], scale: float) -> jax.Array:
    heads = operation.heads, operation.shape[0] // operation.heads
    queries, keys, values = (each.reshape(len(each), *heads, -1) for each in entering)
    by_head = values @ (keys.mT @ queries)
    return (by_head * (operation.scale * scale)).reshape(-1, *operation.shape)


def _maximum(operation: MaximumPool, x: jax.Array) -> jax.Array:
    size, stride, padding = ((each, each) for each in (operation.size, operation.stride, operation.padding))
    return _reduced(x, -jnp.inf, lax.max, size, stride, padding)


def _reduced(
    x: jax.Array,
    empty: Any,
    function: Callable[..., Any],
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
) -> jax.Array:
    """Each window of a value reduced by a function, which gives `empty` for none."""
    around = [(0, 0), (0, 0), *((each, each) for each in padding)]
    result: jax.Array = lax.reduce_window(x, empty, function, (1, 1, *size), (1, 1, *stride), around)
    return result
