"""Answers to problems, as a library would give them: the reference's own, in some number format."""

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.workloads.linear_lif import Problem


def answer_to(problem: Problem, which: int, cotangent: int, dtype: str = "float64", case: Case | None = None) -> Answer:
    """The reference's answer in some format; with `case`, its answer for another case."""
    case = case or problem.case
    layers = [(w.astype(dtype), b.astype(dtype)) for w, b in problem.layers()]
    inputs, given = problem.input(which).astype(dtype), problem.cotangent(cotangent).astype(dtype)
    traces = reference.network_forward(layers, inputs, case)
    got = reference.network_backward(layers, inputs, traces, given, case)
    return Answer(traces[-1].spikes, got.weights, got.biases, got.input)
