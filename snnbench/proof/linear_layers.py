"""The check of a network without neurons: its outputs and gradients are those of its linear layers.

    x_0 = input;  x_l = x_(l-1) W_l^T + b_l;  output x_L
    g_L = cotangent;  g_(l-1) = g_l W_l;  gradient of the input g_0, of the first bias the sum of g_1

Some rows [N] of the outputs are computed again in float64. The allowed error is that of sums of N products each:
2 (N + 2) roundoffs of the sum of the products' magnitudes, for each layer.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.answer import Answer
from snnbench.cases.problem import Problem
from snnbench.proof.tolerance import UNIT_ROUNDOFF

ROWS = 16
"""Rows that are computed again: pairs of a time step and a sample, spread over all of them."""
Rows = NDArray[np.float64]


def complaint(problem: Problem, gain: float, answer: Answer) -> str:
    """Why the answer to content 0 is not that of the linear layers, whose weights and biases are times `gain`."""
    case = problem.case
    roundoff = UNIT_ROUNDOFF["tf32" if case.precision == "tf32" else case.dtype]
    layers = [(weight * np.float64(gain), bias * np.float64(gain)) for weight, bias in problem.layers()]
    allowed = 2 * (case.neurons + 2) * len(layers) * roundoff

    def compared() -> Iterator[tuple[str, NDArray[np.float32] | None, NDArray[np.float32], bool]]:
        yield "outputs", answer.spikes, problem.input(0), True
        yield "gradients of the input", answer.input, problem.cotangent(0), False

    for name, given, entering, is_forward in compared():
        if given is None:
            continue
        steps, samples = _rows(entering.shape[:2])
        expected, magnitude = _through(layers, entering[steps, samples].astype(np.float64), is_forward)
        error = np.abs(given[steps, samples] - expected)
        if not np.all(error <= allowed * magnitude):
            return f"without neurons the {name} are off by up to {np.max(error):.3g}"
    return ""


def _rows(shape: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The time steps and the samples of some rows."""
    steps, samples = np.unravel_index(np.linspace(0, shape[0] * shape[1] - 1, ROWS).astype(np.intp), shape)
    return steps, samples


def _through(layers: list[tuple[Rows, Rows]], rows: Rows, is_forward: bool) -> tuple[Rows, Rows]:
    """Rows [R, N] after all layers, or a cotangent before them, and the sum of the magnitudes of what is added up."""
    magnitude = np.abs(rows)
    for weight, bias in layers if is_forward else layers[::-1]:
        matrix = weight.T if is_forward else weight
        offset = bias if is_forward else np.zeros_like(bias)
        rows, magnitude = rows @ matrix + offset, magnitude @ np.abs(matrix) + np.abs(offset)
    return rows, magnitude
