"""The reference of a network of operations: all values from the images on, and all gradients, in NumPy, float64."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import recurrence, reference
from snnbench.cases.operations import INPUT, Integrator, Neurons, Operation
from snnbench.cases.problem import Graph
from snnbench.cases.trace import Trace

Array = NDArray[np.float64]
Parameters = Sequence[NDArray[Any]]
"""The parameters of an operation, in the order of its `parameters`."""


def run(problem: Graph, images: Array) -> dict[str, Array]:
    """The value of each operation of a problem, and the INPUT, for `images` [T, B, channels, ...]."""
    values = {INPUT: images.reshape(-1, *images.shape[2:])}
    parameters = problem.parameters()
    for operation in problem.operations():
        values[operation.name] = step(problem, operation, values, len(images), parameters.get(operation.name, ()))
    return values


def step(
    problem: Graph, operation: Operation, values: Mapping[str, Array], time_steps: int, parameters: Parameters
) -> Array:
    """The value of one operation, from the values before it."""
    entering = [values[name] for name in operation.of]
    if isinstance(operation, Neurons):
        return trace(problem, operation, entering[0], time_steps, parameters).spikes.reshape(entering[0].shape)
    if isinstance(operation, Integrator):
        operation = replace(operation, time_steps=time_steps)
    return operation.value(entering, parameters)


def trace(problem: Graph, operation: Neurons, current: Array, time_steps: int, parameters: Parameters) -> Trace:
    """What the neurons of a site do with a current [images, ...]; all arrays of the trace are [T, B, N]."""
    return reference.forward(_by_step(current, time_steps), problem.neuron(operation), recurrent=_own(parameters))


@dataclass(frozen=True, slots=True)
class Backward:
    """The gradients of all parameters in order, the sizes of their sums, and what arrives at each value."""

    gradients: list[Array]
    sizes: list[float]
    arriving: dict[str, Array]


def run_back(problem: Graph, values: Mapping[str, Array], cotangent: Array) -> Backward:
    """All gradients for the cotangent [T, B, classes] of the last operation's value."""
    operations, parameters, steps = problem.operations(), problem.parameters(), len(cotangent)
    arriving: dict[str, Array] = {operations[-1].name: cotangent.reshape(-1, *cotangent.shape[2:])}
    gradients: dict[str, list[Array]] = {}
    sizes: dict[str, list[float]] = {}
    for operation in reversed(operations):
        entering = [values[name] for name in operation.of]
        own = [each.astype(np.float64) for each in parameters.get(operation.name, ())]
        upstream = arriving[operation.name]
        if isinstance(operation, Neurons):
            of_site, neuron = trace(problem, operation, entering[0], steps, own), problem.neuron(operation)
            by_step = reference.backward(_by_step(upstream, steps), of_site, neuron, recurrent=_own(own))
            back = [by_step.reshape(entering[0].shape)]
            if operation.recurrent:
                gradients[operation.name] = [recurrence.own_gradient(by_step, of_site.spikes)]
                sizes[operation.name] = [recurrence.own_size(by_step, of_site.spikes)]
        else:
            gradients[operation.name] = operation.gradients(entering, own, upstream)
            sizes[operation.name] = operation.gradient_sizes(entering, own, upstream)
            back = operation.backward(entering, own, upstream)
        for name, gradient in zip(operation.of, back, strict=True):
            arriving[name] = arriving[name] + gradient if name in arriving else gradient
    ordered = [each.name for each in operations]
    return Backward(
        [each for name in ordered for each in gradients.get(name, [])],
        [each for name in ordered for each in sizes.get(name, [])],
        arriving,
    )


def _by_step(images: Array, steps: int) -> Array:
    """[images, ...] as [T, B, N]."""
    return images.reshape(steps, len(images) // steps, -1)


def _own(parameters: Parameters) -> Array | None:
    """The weights of a site's own spikes."""
    return np.asarray(parameters[0], np.float64) if parameters else None
