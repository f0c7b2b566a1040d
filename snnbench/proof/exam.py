"""The exact exam: a tiny network without rounding, so spikes must match at every position.

It has three passes in one process. Two are on different inputs, so that an answer kept from the first cannot pass. The
third is on the second input with its cotangent reversed in time, so that a gradient which ignores time cannot pass.
"""

from collections.abc import Callable

import numpy as np

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.problem import REVERSED, Graph, Problem
from snnbench.proof import operations_exam
from snnbench.proof.comparison import Finding, compare_gradient, compare_spikes
from snnbench.proof.tolerance import EXAM_GRADIENT_ROUNDOFFS, gradient_tolerance

PASSES = ((0, 0), (1, 1), (1, REVERSED))
"""(number of the input, number of the cotangent) of each pass."""


def sit(problem: Problem, run: Callable[[int, int], Answer], backward: bool = True) -> Finding:
    """Put `run(input, cotangent)` to the exam; return one finding for all passes.

    Without `backward` only spikes are compared.
    """
    if isinstance(problem, Graph):
        return operations_exam.sit(problem, run, PASSES, backward)
    finding = Finding()
    case = problem.case
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    tolerance = gradient_tolerance(case, EXAM_GRADIENT_ROUNDOFFS)
    for which_input, which_cotangent in PASSES:
        inputs = problem.input(which_input).astype(np.float64)
        cotangent = problem.cotangent(which_cotangent).astype(np.float64)
        traces = reference.network_forward(layers, inputs, case)
        expected = reference.network_backward(layers, inputs, traces, cotangent, case) if backward else None
        _compare(finding, run(which_input, which_cotangent), traces[-1], expected, case, tolerance)
        if not finding.correct:
            break  # later complaints follow from the first
    return finding


def _compare(
    finding: Finding,
    answer: Answer,
    trace: reference.Trace,
    expected: reference.Gradients | None,
    case: Case,
    tolerance: float,
) -> None:
    if answer.spikes is None:
        finding.complaints.append("no spikes")
        return
    compare_spikes(finding, answer.spikes, trace.spikes, trace.potential, case)
    if expected is None:
        return
    for number in range(len(expected.weights)):
        name = "weight" if case.sites == 1 else f"weight of layer {number}"
        got = answer.weights[number] if answer.weights else None
        compare_gradient(finding, name, got, expected.weights[number], tolerance)
        got = answer.biases[number] if answer.biases else None
        compare_gradient(finding, name.replace("weight", "bias"), got, expected.biases[number], tolerance)
    compare_gradient(finding, "input", answer.input, expected.input, tolerance)
