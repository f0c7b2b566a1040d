"""The exact exam of a network of operations: its outputs and gradients, through all of its sites at once.

No rounding can decide about a spike, so a neuron that is wrong anywhere, two sites in each other's place, or a missing
connection give other outputs.
"""

from collections.abc import Callable
from itertools import zip_longest

import numpy as np

from snnbench.cases import network_reference, reference
from snnbench.cases.answer import Answer
from snnbench.cases.operations import Neurons
from snnbench.cases.problem import Graph
from snnbench.proof.comparison import Finding, compare_gradient
from snnbench.proof.tolerance import EXAM_GRADIENT_ROUNDOFFS, gradient_tolerance

Array = reference.Array
Passes = tuple[tuple[int, int], ...]


def sit(problem: Graph, run: Callable[[int, int], Answer], passes: Passes, backward: bool = True) -> Finding:
    """Put `run(input, cotangent)` to the exam; return one finding for all passes. `rate` is the reference's."""
    finding = Finding()
    case, network = problem.case, problem.operations()
    parameters = problem.parameters()
    sites = [operation for operation in network if isinstance(operation, Neurons)]
    tolerance = gradient_tolerance(case, EXAM_GRADIENT_ROUNDOFFS)
    for which_input, which_cotangent in passes:
        values = network_reference.run(network, parameters, problem.input(which_input).astype(np.float64), case)
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
            gradients = network_reference.run_back(network, parameters, values, cotangent, case)
            names = [f"{parameter} of {each.name}" for each in network for parameter in each.parameters]
            for name, got, wanted in zip_longest(names, answer.weights or [], gradients):
                compare_gradient(finding, name, got, wanted, tolerance)
        if not finding.correct:
            break
    return finding
