"""The initial parameters of the workload `network`: random ones by a counted variance, and exact ones for the exam."""

from math import prod

import numpy as np

from snnbench.cases.case import Case
from snnbench.cases.operations import Linear
from snnbench.cases.problem import Array, gaussian, generator
from snnbench.cases.windows import Convolution
from snnbench.workloads import models

BIAS_SCALE = 0.05


def normal(case: Case, model: models.Model) -> dict[str, list[Array]]:
    """Kernels whose sums have the counted variance, and normalisations that make it SPREAD thresholds squared."""
    drawn: dict[str, list[Array]] = {}
    for number, operation in enumerate(model.operations):
        normal = [gaussian(case, name, number, shape) for name, shape in operation.parameters.items()]
        if not normal:
            continue
        if operation.name in model.shares:
            share, offset = model.shares[operation.name], model.offsets[operation.name]
            scale = np.full(operation.shape[0], models.SPREAD * case.threshold * share**0.5, np.float32)
            drawn[operation.name] = [scale, np.float32(BIAS_SCALE) * normal[1] + np.float32(offset * case.threshold)]
        elif isinstance(operation, Convolution):
            drawn[operation.name] = [normal[0] * np.float32(operation.terms**-0.5)]
        else:
            drawn[operation.name] = [normal[0] * np.float32((operation.terms * models.RATE) ** -0.5), 0 * normal[1]]
    return drawn


def sixteenths(case: Case, model: models.Model) -> dict[str, list[Array]]:
    """Kernels of a few sixteenths, and normalisations that add others: |x| <= 3.5, so |u| <= 7.

    A current is at most 2.5 with a whole share of its variance, 1 more with spikes added, and 1.75 with half a share.
    Where numbers of spikes enter, entries are that much smaller.
    """
    drawn: dict[str, list[Array]] = {}
    following = {name: operation.name for operation in model.operations for name in operation.of}
    for number, operation in enumerate(model.operations):
        random = generator(case, "exam", number)
        if operation.name in model.shares:
            is_half, adds_spikes = model.shares[operation.name] < 1, model.offsets[operation.name] < 0
            low, high = (3, 6) if is_half else (0, 4) if adds_spikes else (5, 9)
            bias = (random.integers(low, high, size=operation.shape[0]) / 16).astype(np.float32)
            drawn[operation.name] = [np.ones(operation.shape[0], np.float32), bias]
        elif isinstance(operation, Convolution | Linear):
            high = 9 if model.shares.get(following.get(operation.name, ""), 1) == 1 else 6
            most = model.most.get(operation.name, 1)
            arrays = [_sparse(random, operation.parameters["weight"], -(-high // most), -(4 // most))]
            if isinstance(operation, Linear):
                arrays.append((random.integers(-4, 5, size=operation.shape) / 16).astype(np.float32))
            drawn[operation.name] = arrays
    return drawn


def _sparse(random: np.random.Generator, shape: tuple[int, ...], high: int, low: int = -4) -> Array:
    """A kernel [channels, inputs, ...] with four entries for each channel, from `low` to `high` - 1 sixteenths.

    Two entries are in the middle: in a small image the others read the zeros around it.
    """
    kernel = np.zeros((shape[0], shape[1], prod(shape[2:])), np.float32)
    size = kernel.shape[2]
    for channel in kernel:
        entries = [(int(each), size // 2) for each in random.choice(shape[1], 2, shape[1] < 2)]
        entries += [divmod(int(each), size) for each in random.choice(channel.size, 2)]
        for entry in entries:
            channel[entry] = random.integers(low, high) / 16
    return kernel.reshape(shape)
