"""The exam of a NIR graph: drawn weights of a few sixteenths, scaled so that every site of neurons fires.

A graph's own weights may leave sites silent on eight steps. So the exam draws others, operation by operation. It scales
each operation before neurons by a power of two: the largest current on the exam's input is then between 1.5 and 3.
Currents are sums of few dyadic numbers, so no order of summation rounds them.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import network_reference
from snnbench.cases.operations import INPUT, Convolution, Linear, Neurons, Operation
from snnbench.cases.problem import Array, Graph, generator

LARGEST = 3.0
"""The largest current of a site; half of it is the smallest such."""
TRIES = 20
"""Draws of weights, until one makes every site fire and rest."""
FEWEST, MOST = 0.01, 0.95
"""Spikes per step of a site that tell a right neuron from a wrong one."""
NEAREST = 1e-5
"""How near to the threshold a potential may come: rounding in float32 is far smaller."""
ENTRIES = 4
"""Weights of a neuron that are not 0."""


def parameters(problem: Graph) -> dict[str, list[Array]]:
    """Drawn parameters of each operation that has some."""
    operations = problem.operations()
    images = problem.input(0).astype(np.float64)
    values = {INPUT: images.reshape(-1, *images.shape[2:])}
    currents = {each.of[0] for each in operations if isinstance(each, Neurons)}
    drawn: dict[str, list[Array]] = {}
    for number, operation in enumerate(operations):
        random = generator(problem.case, "exam", number)
        arrays = [_drawn(operation, name, shape, random) for name, shape in operation.parameters.items()]
        value = network_reference.step(problem, operation, values, len(images), arrays)
        largest = float(np.abs(value).max())
        if operation.name in currents and arrays and largest:
            factor = 2.0 ** np.floor(np.log2(LARGEST / largest))
            arrays = [(each * factor).astype(np.float32) for each in arrays]
            value = value * factor
        values[operation.name] = value
        if arrays:
            drawn[operation.name] = arrays
    return drawn


def tells(problem: Graph) -> bool:
    """Whether each site fires and rests on both inputs, and no potential is so near that rounding decides."""
    return all(_tells(problem, which) for which in (0, 1))


def _tells(problem: Graph, which: int) -> bool:
    images, drawn = problem.input(which).astype(np.float64), problem.parameters()
    values = network_reference.run(problem, images)
    for operation in problem.operations():
        if not isinstance(operation, Neurons):
            continue
        trace = network_reference.trace(
            problem, operation, values[operation.of[0]], len(images), drawn.get(operation.name, ())
        )
        distance = np.abs(trace.potential - problem.neuron(operation).threshold).min()
        if not FEWEST < trace.spikes.mean() < MOST or distance < NEAREST:
            return False
    return True


def _drawn(operation: Operation, name: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if name == "bias":
        sixteenths: NDArray[np.int64] = random.integers(1, 7, size=shape)
    elif isinstance(operation, Linear | Convolution) or name == "recurrent":
        sixteenths = _sparse(shape, random)
    else:
        sixteenths = random.integers(4, 13, size=shape)
    return (sixteenths / 16).astype(np.float32)


def _sparse(shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.int64]:
    """Rows [N, ...] with a few numbers each, from -4 to 8."""
    rows = np.zeros((shape[0], prod(shape[1:])), np.int64)
    for row in rows:
        chosen = random.choice(len(row), min(ENTRIES, len(row)), replace=False)
        row[chosen] = random.integers(-4, 9, size=len(chosen))
    return rows.reshape(shape)
