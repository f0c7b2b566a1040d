"""The exam of a NIR graph: drawn weights of a few sixteenths, scaled so that every site of neurons fires and rests.

A graph's own weights may leave sites silent on eight steps. So the exam draws others, operation by operation, and draws
those before a site again until its neurons tell a right library from a wrong one. They are scaled by powers of two, so
currents are sums of few dyadic numbers, and no order of summation rounds them by much. Weights that are not before a
site are quarters: longer fractions would put potentials nearer to the threshold.
"""

from math import prod

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import network_reference
from snnbench.cases.operations import INPUT, Linear, Neurons, Operation
from snnbench.cases.problem import Array, Graph, generator
from snnbench.cases.windows import Convolution

DRIVE = 1.5
"""The current in thresholds that one in ten of a site's neurons and steps exceeds, within a factor of two."""
TRIES = 8
"""Draws of the weights before a site, until its neurons fire and rest."""
FEWEST, MOST, LIKELY = 0.01, 0.95, 0.3
"""Spikes per step of a site that tell a right neuron from a wrong one, and those that are looked for."""
NEAREST = 2e-6
"""How near to the threshold a potential may come, in float32: rounding is smaller."""
ENTRIES = 4
"""Weights of a neuron that are not 0."""
Drawn = dict[str, list[Array]]
Values = dict[str, NDArray[np.float64]]


def parameters(problem: Graph) -> Drawn:
    """Drawn parameters of each operation that has some."""
    images = problem.input(0).astype(np.float64)
    values: Values = {INPUT: images.reshape(-1, *images.shape[2:])}
    sites = {each.of[0]: each for each in problem.operations() if isinstance(each, Neurons)}
    drawn: Drawn = {}
    for number, operation in enumerate(problem.operations()):
        if operation.name in values:
            continue
        site = sites.get(operation.name)
        if site is None:
            _draw(problem, operation, values, drawn, (number, 0))
            continue
        worths = []
        for attempt in range(TRIES):
            _draw(problem, operation, values, drawn, (number, attempt), drives=True)
            _draw(problem, site, values, drawn, (number + 1, attempt))
            rate = float(values[site.name].mean())
            worths.append((not tells(problem, site, values, drawn), abs(rate - LIKELY), attempt))
        _, _, best = min(worths)
        _draw(problem, operation, values, drawn, (number, best), drives=True)
        _draw(problem, site, values, drawn, (number + 1, best))
    return {each.name: drawn[each.name] for each in problem.operations() if each.name in drawn}


def tells(problem: Graph, site: Neurons, values: Values, drawn: Drawn) -> bool:
    """Whether a site's neurons fire and rest, and no potential is so near to the threshold that rounding decides."""
    steps, own = problem.case.time_steps, drawn.get(site.name, ())
    trace = network_reference.trace(problem, site, values[site.of[0]], steps, own)
    distance = float(np.abs(trace.potential - problem.neuron(site).threshold).min())
    return FEWEST < trace.spikes.mean() < MOST and distance > NEAREST


def _draw(
    problem: Graph, operation: Operation, values: Values, drawn: Drawn, number: tuple[int, int], drives: bool = False
) -> None:
    """Draw the parameters of an operation, scaled if it `drives` neurons, and compute its value."""
    place, attempt = number
    random = generator(problem.case, f"exam {attempt}", place)
    unit = 16 if drives or isinstance(operation, Neurons) else 4
    arrays = [_drawn(operation, name, shape, random) / np.float32(unit) for name, shape in operation.parameters.items()]
    value = network_reference.step(problem, operation, values, problem.case.time_steps, arrays)
    strong = float(np.quantile(value, 0.9)) or float(value.max())
    if drives and strong > 0:
        factor = 2.0 ** np.round(np.log2(DRIVE / strong))
        arrays, value = [(each * factor).astype(np.float32) for each in arrays], value * factor
    values[operation.name] = value
    if arrays:
        drawn[operation.name] = arrays


def _drawn(operation: Operation, name: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if name == "bias":
        return random.integers(1, 7, size=shape).astype(np.float32)
    if isinstance(operation, Linear | Convolution) or name == "recurrent":
        return _sparse(shape, random).astype(np.float32)
    return random.integers(4, 13, size=shape).astype(np.float32)


def _sparse(shape: tuple[int, ...], random: np.random.Generator) -> NDArray[np.int64]:
    """Rows [N, ...] with a few numbers each, from -4 to 8."""
    rows = np.zeros((shape[0], prod(shape[1:])), np.int64)
    for row in rows:
        chosen = random.choice(len(row), min(ENTRIES, len(row)), replace=False)
        row[chosen] = random.integers(-4, 9, size=len(chosen))
    return rows.reshape(shape)
