"""The check of a network without neurons: its outputs and gradients are those of its linear layers.

    x_0 = input;  x_l = x_(l-1) W_l^T + b_l;  output x_L
    g_L = cotangent;  g_(l-1) = g_l W_l;  gradient of the input g_0
    gradient of W_l: g_l^T x_(l-1);  of b_l: g_l summed over steps and samples

Some rows [N] of the outputs and of the input's gradient, and some entries of each parameter's gradient, are computed
again in float64. A layer's sums have N products, and those of a parameter's gradient have T * B. The allowed error is
that of such sums in any order, two roundoffs of the magnitudes' sum for each term, and of rounding operands and results
to the case's format. A parameter's gradient may be added up in that format, step by step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.problem import Problem
from snnbench.proof.tolerance import UNIT_ROUNDOFF

SAMPLED = 16
"""Rows, pairs of a time step and a sample, and neurons of a layer that are computed again, spread over all of them."""
STEPS_AT_ONCE = 64
OPERANDS = 4
"""Roundings to the case's format in a layer: of its input, weights and bias, and of the result."""
Floats = NDArray[np.float64]
Layer = tuple[Floats, Floats]
"""Weight [N_out, N_in] and bias [N_out], as the library has them."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """An array of an answer where it is compared, the value in float64, and how far the two may be apart."""

    name: str
    given: NDArray[np.float32]
    value: Floats
    allowed: Floats


def complaint(problem: Problem, gain: float, answer: Answer) -> str:
    """Why the answer to content 0 is not that of the linear layers, whose weights and biases are times `gain`."""
    for each in _compared(problem, gain, answer):
        error = np.abs(each.given - each.value)
        if not np.all(error <= each.allowed):
            return f"without neurons the {each.name} are off by up to {np.max(error):.3g}"
    return ""


def _compared(problem: Problem, gain: float, answer: Answer) -> Iterator[_Compared]:
    """Each output of the answer that it has."""
    case = problem.case
    layers = [(weight * np.float64(gain), bias * np.float64(gain)) for weight, bias in problem.layers()]
    through = len(layers) * _roundoffs(case, max(case.fan_in, case.fan_out))
    places = np.unravel_index(
        np.linspace(0, case.time_steps * case.batch - 1, SAMPLED).astype(np.intp), (case.time_steps, case.batch)
    )
    if answer.spikes is not None:
        value, magnitude = _outputs(layers, problem.input(0)[places].astype(np.float64))
        yield _Compared("outputs", answer.spikes[places], value, through * magnitude)
    if answer.input is not None:
        value, magnitude = _outputs(_transposed(layers), problem.cotangent(0)[places].astype(np.float64))
        yield _Compared("gradients of the input", answer.input[places], value, through * magnitude)
    if answer.weights is None or answer.biases is None:
        return
    added = _roundoffs(case, case.time_steps * case.batch, case.time_steps)
    for number, (weights, biases) in enumerate(zip(answer.weights, answer.biases, strict=True)):
        rows, columns = (np.unique(np.linspace(0, size - 1, SAMPLED).astype(np.intp)) for size in weights.shape)
        gradients = _gradients(problem, layers, number, rows, columns)
        sampled = weights[np.ix_(rows, columns)], biases[rows]
        for name, given, (value, magnitude) in zip(("weights", "biases"), sampled, gradients, strict=True):
            allowed = gain * (through + added) * magnitude
            yield _Compared(f"gradients of layer {number + 1}'s {name}", given, gain * value, allowed)


def _roundoffs(case: Case, terms: int, steps: int = 0) -> float:
    """The relative error of a sum of so many terms, and of `steps` further sums in the case's format."""
    of_format = UNIT_ROUNDOFF["tf32" if case.precision == "tf32" else case.dtype]
    of_sums = UNIT_ROUNDOFF["float64" if case.dtype == "float64" else "float32"]
    return 2 * (terms + 2) * of_sums + (OPERANDS + steps) * of_format


def _transposed(layers: Sequence[Layer]) -> list[Layer]:
    """The layers that a cotangent passes, in its order."""
    return [(weight.T, np.zeros(weight.shape[1])) for weight, _ in reversed(layers)]


def _outputs(layers: Sequence[Layer], rows: Floats) -> tuple[Floats, Floats]:
    """Rows [R, N] after all layers, and the sum of the magnitudes of all that is added up."""
    magnitude = np.abs(rows)
    for weight, bias in layers:
        rows, magnitude = rows @ weight.T + bias, magnitude @ np.abs(weight.T) + np.abs(bias)
    return rows, magnitude


def _gradients(
    problem: Problem, layers: list[Layer], number: int, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> list[tuple[Floats, Floats]]:
    """Gradients of a layer's weights [R, C] and biases [R] at some neurons, and their sums of magnitudes."""
    case = problem.case
    leaving, reached = layers[number][0].shape
    weights, biases = np.zeros((2, len(rows), len(columns))), np.zeros((2, len(rows)))
    for is_magnitude in (0, 1):
        change = np.abs if is_magnitude else np.asarray
        changed = [(change(weight), change(bias)) for weight, bias in layers]
        entering, offset = _columns(changed[:number], reached, columns)
        arriving, _ = _columns(_transposed(changed[number + 1 :]), leaving, rows)
        for start in range(0, case.time_steps, STEPS_AT_ONCE):
            inputs, cotangents = (
                change(array[start : start + STEPS_AT_ONCE].reshape(-1, array.shape[2]).astype(np.float64))
                for array in (problem.input(0), problem.cotangent(0))
            )
            arrived = cotangents @ arriving
            weights[is_magnitude] += arrived.T @ (inputs @ entering + offset)
            biases[is_magnitude] += np.sum(arrived, axis=0)
    return [(weights[0], weights[1]), (biases[0], biases[1])]


def _columns(layers: Sequence[Layer], width: int, neurons: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """A matrix [N, S] and an offset [S]: rows times the matrix, and the offset, are these neurons after the layers."""
    matrix, offset = np.zeros((width, len(neurons))), np.zeros(len(neurons))
    matrix[neurons, np.arange(len(neurons))] = 1.0
    for weight, bias in reversed(layers):
        offset, matrix = offset + bias @ matrix, weight.T @ matrix
    return matrix, offset
