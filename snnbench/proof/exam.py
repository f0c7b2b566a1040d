"""The exact exam: a tiny network without rounding, so spikes must match at every position.

It has three passes in one process. Two are on different inputs, so that an answer kept from the first cannot pass. The
third is on the second input with its cotangent reversed in time, so that a gradient which ignores time cannot pass.

A network of operations is examined through all of its sites at once. No rounding can decide about a spike, so a neuron
that is wrong anywhere, two sites in each other's place, or a missing connection give other outputs.
"""

from collections.abc import Callable
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.cases import constants, network_reference, reference
from snnbench.cases.answer import Answer
from snnbench.cases.operations import Neurons
from snnbench.cases.problem import REVERSED, Graph, Problem
from snnbench.cases.rule import rule_of
from snnbench.cases.trace import Trace
from snnbench.proof import amplification, cause
from snnbench.proof.amplification import Backpropagation
from snnbench.proof.comparison import Finding, compare_gradient, compare_spikes
from snnbench.proof.tolerance import EXAM_GRADIENT_ROUNDOFFS, gradient_tolerance

Array = reference.Array
Passes = tuple[tuple[int, int], ...]


def sit(problem: Graph, run: Callable[[int, int], Answer], passes: Passes, backward: bool = True) -> Finding:
    """Put `run(input, cotangent)` to the exam; return one finding for all passes. `rate` is the reference's."""
    finding = Finding()
    case, network = problem.case, problem.operations()
    sites = [operation for operation in network if isinstance(operation, Neurons)]
    tolerance = gradient_tolerance(case, EXAM_GRADIENT_ROUNDOFFS)
    for which_input, which_cotangent in passes:
        values = network_reference.run(problem, problem.input(which_input).astype(np.float64))
        answer = run(which_input, which_cotangent)
        spikes = sum(values[site.name].sum() for site in sites)
        finding.rate = float(spikes / (case.time_steps * case.batch * sum(site.count for site in sites)))
        expected = values[network[-1].name].reshape(case.shape)
        if answer.spikes is None:
            finding.complaints.append("no output")
            return finding
        finding.compared += answer.spikes.size
        compare_gradient(finding, "output", answer.spikes, expected, tolerance)
        del finding.gradient_errors["output"], finding.cosines["output"]
        if backward and finding.correct:
            cotangent = problem.cotangent(which_cotangent).astype(np.float64)
            back = network_reference.run_back(problem, values, cotangent)
            names = [f"{parameter} of {each.name}" for each in network for parameter in each.parameters]
            for name, got, wanted, size in zip_longest(names, answer.weights or [], back.gradients, back.sizes):
                compare_gradient(finding, name, got, wanted, tolerance, size)
        if not finding.correct:
            break
    return finding


PASSES = ((0, 0), (1, 1), (1, REVERSED))
"""(number of the input, number of the cotangent) of each pass."""
SINGULAR = {"weights": "weight", "biases": "bias"}


def run_exam(problem: Problem, run: Callable[[int, int], Answer], backward: bool = True) -> Finding:
    """Put `run(input, cotangent)` to the exam; return one finding for all passes.

    Without `backward` only spikes are compared.
    """
    if isinstance(problem, Graph):
        return sit(problem, run, PASSES, backward)
    finding = Finding()
    case = problem.case
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    tolerance = gradient_tolerance(case, EXAM_GRADIENT_ROUNDOFFS)
    for number, (which_input, which_cotangent) in enumerate(PASSES):
        inputs = problem.input(which_input).astype(np.float64)
        cotangent = problem.cotangent(which_cotangent).astype(np.float64)
        traces = reference.network_forward(layers, inputs, case)
        backpropagation = Backpropagation(layers, inputs, traces, cotangent, rule_of(case), case)
        answer = run(which_input, which_cotangent)
        _compare(finding, answer, backpropagation, tolerance, backward)
        if not finding.correct:
            before = problem.input(PASSES[number - 1][0]).astype(np.float64) if number else None
            _explain(finding, problem, (which_input, which_cotangent), before, answer, traces[-1])
            break  # later complaints follow from the first
    return finding


def _explain(
    finding: Finding,
    problem: Problem,
    content: tuple[int, int],
    before: reference.Array | None,
    answer: Answer,
    trace: Trace,
) -> None:
    """Name the cause of a wrong answer, and show the first steps of the first wrong neuron."""
    if answer.spikes is None or answer.spikes.shape != trace.spikes.shape or not np.isfinite(answer.spikes).all():
        return
    differs = answer.spikes != trace.spikes
    if differs.any():
        t, b, n = (int(axis[0]) for axis in np.nonzero(differs))
        finding.steps = cause.first_steps(trace, t, b, n, answer.spikes)
        finding.cause = cause.of_spikes(problem, before, content[0], answer.spikes)
    else:
        finding.cause = cause.of_gradient(problem, *content, answer)


def _compare(
    finding: Finding, answer: Answer, backpropagation: Backpropagation, tolerance: float, backward: bool
) -> None:
    """Compare spikes with the last trace, and `backward` also all gradients."""
    case, trace = backpropagation.case, backpropagation.traces[-1]
    if answer.spikes is None:
        finding.complaints.append("no spikes")
        return
    compare_spikes(finding, answer.spikes, trace.spikes, trace.potential, case)
    if not backward:
        return
    expected, runs = backpropagation.gradients, cache(backpropagation.errors)
    wrong_spikes = list(finding.complaints)

    def compare(
        name: str,
        got: NDArray[Any] | None,
        part: Callable[[reference.Gradients], reference.Array],
        least_size: float = 0.0,
    ) -> None:
        wanted = part(expected)

        def magnified() -> float:
            return amplification.allowed(wanted, map(part, runs()), case.dtype, least_size)

        compare_gradient(finding, name, got, wanted, tolerance, least_size, magnified)

    for number in range(len(expected.weights)):
        name = "" if case.sites == 1 else f" of layer {number}"
        for part, layers in (("weights", answer.weights), ("biases", answer.biases)):
            got = layers[number] if layers else None
            compare(f"{SINGULAR[part]}{name}", got, amplification.of_layer(part, number))
    names = constants.names(rule_of(case), case.sites)
    for number, (name, least_size) in enumerate(zip(names, expected.sizes, strict=True)):
        compare(name, answer.constant(number), amplification.of_layer("constants", number), least_size)
    compare("input", answer.input, lambda gradients: gradients.input)
    if wrong_spikes:
        finding.complaints = wrong_spikes  # gradients belong to their spikes
    if not expected.input.any():
        finding.unprovable = "the gradient is zero: no potential comes near the threshold"
