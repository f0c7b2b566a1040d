"""The reference of a network of operations: all values from the images on, and all gradients, in NumPy, float64."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import reference
from snnbench.cases.case import Case
from snnbench.cases.operations import INPUT, Neurons, Operation

Array = NDArray[np.float64]
Parameters = Mapping[str, Sequence[NDArray[Any]]]
"""The parameters of each operation that has some, in the order of its `parameters`."""


def run(operations: Sequence[Operation], parameters: Parameters, images: Array, case: Case) -> dict[str, Array]:
    """The value of each operation, and the INPUT, for `images` [T, B, channels, ...] of the case's neurons."""
    steps = len(images)
    values = {INPUT: images.reshape(-1, *images.shape[2:])}
    for operation in operations:
        entering = [values[name] for name in operation.of]
        if isinstance(operation, Neurons):
            trace = reference.forward(_by_step(entering[0], steps), case)
            values[operation.name] = trace.spikes.reshape(entering[0].shape)
        else:
            values[operation.name] = operation.value(entering, parameters.get(operation.name, ()))
    return values


def run_back(
    operations: Sequence[Operation], parameters: Parameters, values: Mapping[str, Array], cotangent: Array, case: Case
) -> list[Array]:
    """The gradients of all parameters in order, for the cotangent [T, B, classes] of the last operation's value."""
    steps = len(cotangent)
    arriving: dict[str, Array | float] = {operations[-1].name: cotangent.reshape(-1, *cotangent.shape[2:])}
    gradients: dict[str, list[Array]] = {}
    for operation in reversed(operations):
        entering, own = [values[name] for name in operation.of], parameters.get(operation.name, ())
        upstream = np.asarray(arriving[operation.name])
        if isinstance(operation, Neurons):
            trace = reference.forward(_by_step(entering[0], steps), case)
            back = [reference.backward(_by_step(upstream, steps), trace, case).reshape(entering[0].shape)]
        else:
            gradients[operation.name] = operation.gradients(entering, own, upstream)
            back = operation.backward(entering, own, upstream)
        for name, gradient in zip(operation.of, back, strict=True):
            arriving[name] = arriving.get(name, 0.0) + gradient
    return [gradient for operation in operations for gradient in gradients.get(operation.name, [])]


def _by_step(images: Array, steps: int) -> Array:
    return images.reshape(steps, -1, *images.shape[1:])
