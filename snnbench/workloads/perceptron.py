"""The network of the workloads that train on events: linear layers, each followed by neurons, and a linear classifier.

Every site of neurons must fire, or a wrong one could pass. So the variance of a current is counted: it is SPREAD
thresholds squared, for inputs whose mean square is counted, too. A neuron without decay fires at about the rate of its
mean current, if that is positive. Among neurons the mean current of spikes at a rate r has the standard deviation
SPREAD * r / sqrt(RATE) thresholds, and its positive part the mean 0.4 times that: 1.2 r. So the rate does not fall from
layer to layer.
"""

from math import prod

import numpy as np

from snnbench.cases.case import Case
from snnbench.cases.operations import INPUT, Linear, Neurons, Operation
from snnbench.cases.problem import Array, gaussian, generator

SPREAD = 1.5
"""Standard deviation of a current, in thresholds."""
RATE = 0.25
"""The spikes per step that are counted with, at every site."""
BIAS_SCALE = 0.05
OUTPUT = 1.0
"""Standard deviation of an output's sum over time, about as large as a loss can tell apart."""


def operations(inputs: int, width: int, layers: int, classes: int) -> tuple[Operation, ...]:
    """The operations for images of `inputs` channels without places: `layers` hidden layers of `width` neurons."""
    parts: list[Operation] = []
    last, channels = INPUT, inputs
    for number in range(1, layers + 1):
        linear = Linear(name=f"layer {number} linear", of=(last,), shape=(width,), inputs=channels)
        parts += [linear, Neurons(name=f"layer {number} neurons", of=(linear.name,), shape=(width,))]
        last, channels = parts[-1].name, width
    parts.append(Linear(name="classifier", of=(last,), shape=(classes,), inputs=channels))
    return tuple(parts)


def normal(case: Case, parts: tuple[Operation, ...], mean_square: float) -> dict[str, list[Array]]:
    """Weights whose sums have the counted variance, for an input with this mean square.

    The sum of an output over time has about the standard deviation OUTPUT, for neurons that each fire at the rate RATE.
    """
    drawn: dict[str, list[Array]] = {}
    spread = SPREAD * case.threshold
    for number, operation in enumerate(parts):
        if not isinstance(operation, Linear):
            continue
        weight, bias = (gaussian(case, name, number, shape) for name, shape in operation.parameters.items())
        entering = mean_square if operation.of == (INPUT,) else RATE
        size = spread / (operation.inputs * entering) ** 0.5
        if operation is parts[-1]:
            size = OUTPUT / (case.time_steps * RATE * operation.inputs**0.5)
            bias *= np.float32(0)
        weight *= np.float32(size)
        drawn[operation.name] = [weight, np.float32(BIAS_SCALE * spread) * bias]
    return drawn


def sixteenths(case: Case, parts: tuple[Operation, ...]) -> dict[str, list[Array]]:
    """Weights of four terms of a few sixteenths for each neuron, and biases: |x| <= 2.5 for an input of spikes."""
    drawn: dict[str, list[Array]] = {}
    for number, operation in enumerate(parts):
        if not isinstance(operation, Linear):
            continue
        random = generator(case, "exam", number)
        weight = np.zeros(operation.parameters["weight"], np.float32)
        for row in weight:
            row[random.choice(operation.inputs, 4, operation.inputs < 4)] = random.integers(-4, 9, size=4) / 16
        bias = random.integers(3, 9, size=prod(operation.shape)) / 16
        drawn[operation.name] = [weight, bias.astype(np.float32)]
    return drawn
