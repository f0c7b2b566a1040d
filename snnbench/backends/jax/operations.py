"""A network of operations as a pure function in JAX, with a library's neuron at every site.

Values have time and batch as one axis of images, and then channels, rows and columns. At a site time and batch are axes
of their own again, and all places of all channels are one axis of neurons, in the library's order.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from snnbench.backends.operations import NetworkParts, currents
from snnbench.cases.operations import (
    INPUT,
    Average,
    Convolution,
    Linear,
    MaximumPool,
    Neurons,
    Normalisation,
    Operation,
    Sum,
)

Layer = Callable[[jax.Array], jax.Array]
Placed = dict[str, list[jax.Array]]
"""The parameters of each operation, on the device, or their gradients."""
IMAGE_AXES = ("NCHW", "OIHW", "NCHW")


class Operations:
    """The operations of a plan. `apply(params, x)` takes an input in the plan's order, where N is an image.

    `layer(neurons)` makes a layer of so many neurons, which takes a current times `gain`. So the gain is in the
    normalisation before a site, and in a shortcut of spikes. `scaled` are the values with the gain.
    """

    def __init__(self, plan: NetworkParts, layer: Callable[[int], Layer], gain: float) -> None:
        self.operations, self.order, self.gain = plan.operations, plan.order, gain
        self.names = [INPUT, *(operation.name for operation in plan.operations)]
        self.scaled = dict.fromkeys(currents(plan.operations), gain)
        self.layers = {each.name: layer(each.count) for each in plan.operations if isinstance(each, Neurons)}
        self.params = {
            each.name: [
                parameter * gain if each.name in self.scaled else parameter for parameter in plan.parameters[each.name]
            ]
            for each in plan.operations
            if each.parameters
        }

    def in_order(self, tree: Placed) -> list[tuple[jax.Array, float]]:
        """Each parameter, or its gradient, and the number by which the parameter is multiplied."""
        return [(each, self.scaled.get(name, 1.0)) for name in self.params for each in tree[name]]

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
                return convolution(operation, x, *params)
            case Normalisation():
                return _normalised(operation, x, *params)
            case MaximumPool():
                return _maximum(operation, x)
            case Average():
                return x.mean((2, 3))
            case Linear():
                weight, bias = params
                return x @ weight.T + bias
            case Sum():
                scale = self.scaled.get(operation.name, 1.0)
                first, second = (scale / self.scaled.get(name, 1.0) for name in operation.of)
                return x * first + entering[1] * second if first != 1.0 else x + entering[1] * second
            case Neurons():
                return self._spikes(operation, x, leads)
            case _:
                raise TypeError(f"{operation.name}: a {type(operation).__name__} in JAX is not known here")

    def _spikes(self, operation: Operation, current: jax.Array, leads: tuple[int, ...]) -> jax.Array:
        given = self.order.replace("N", "") + "N"
        by_step = current.reshape(*leads, -1).transpose([given.index(axis) for axis in self.order])
        spikes = self.layers[operation.name](by_step).transpose([self.order.index(axis) for axis in given])
        return spikes.reshape(current.shape)


def convolution(operation: Convolution, x: jax.Array, kernel: jax.Array) -> jax.Array:
    """The value of a convolution."""
    around = [(operation.padding, operation.padding)] * 2
    return lax.conv_general_dilated(x, kernel, [operation.stride] * 2, around, dimension_numbers=IMAGE_AXES)


def _normalised(operation: Normalisation, x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    if operation.variance is None:
        mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
        x = x - mean
    else:
        variance = jnp.full((1, 1, 1, 1), operation.variance, x.dtype)
    return x * (lax.rsqrt(variance + operation.epsilon) * weight[:, None, None]) + bias[:, None, None]


def _maximum(operation: MaximumPool, x: jax.Array) -> jax.Array:
    size, stride, around = operation.size, operation.stride, operation.padding
    window, steps = (1, 1, size, size), (1, 1, stride, stride)
    lowest: Any = -jnp.inf
    padding = [(0, 0), (0, 0), (around, around), (around, around)]
    result: jax.Array = lax.reduce_window(x, lowest, lax.max, window, steps, padding)
    return result
