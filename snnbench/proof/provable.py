"""Whether a case can prove anything, found in the reference on a small case of the same neuron, before a library runs.

Neurons that never fire, or always fire, look the same in every program. If rounding may move a gradient by a good part
of its size, a wrong gradient looks like a right one.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from snnbench import workloads
from snnbench.cases import network_reference, reference
from snnbench.cases.case import Case
from snnbench.cases.operations import Neurons
from snnbench.cases.problem import Graph, Problem
from snnbench.cases.rule import rule_of
from snnbench.cases.surrogate import JUMPS
from snnbench.proof import amplification
from snnbench.proof.comparison import UNPROVABLE, moved
from snnbench.proof.tolerance import out_of_window, round_to

SMALL = {"neurons": 64, "batch": 8, "time_steps": 2000}
"""The sizes up to which the reference runs: neurons and samples are independent, and behave alike."""
Array = reference.Array


@cache
def hindrance(case: Case) -> str:
    """Why this case proves nothing about any library, with a value to change; empty if it can.

    Of networks of drawn weights and of epochs nothing is known before they run.
    """
    small = _small(case)
    if not (reason := _reason(small)):
        return ""
    if case.DRIVEN_BY:
        change = "raise" if "silent" in reason else "lower" if "busy" in reason else ""
        return f"{reason}; {change} {' or '.join(case.DRIVEN_BY)}" if change else reason
    for field, value in _changes(small, reason):
        shown = float(f"{value:.3g}") if isinstance(value, float) else value
        if not _reason(small.with_(**{field: shown})):
            return f"{reason}; case.{field} = {shown} would do"
    return reason


def _small(case: Case) -> Case:
    sizes = {name: min(size, getattr(case, name)) for name, size in SMALL.items() if name != "neurons"}
    return case.narrowed(SMALL["neurons"]).with_(**sizes)


@cache
def _reason(case: Case) -> str:
    workload = workloads.of(case)
    if case.is_recurrent and case.surrogate in JUMPS:
        return (
            f"rounding decides on a side of {case.surrogate}'s jump, which a recurrent layer passes on to all neurons"
        )
    if case.is_fed:
        return ""
    problem = workload.Problem(case)
    with np.errstate(all="ignore"):  # a gradient may overflow
        if isinstance(problem, Graph):
            return _of_graph(problem) if case.DRIVEN_BY else ""
        reasons = (_of(problem), *(_of(exam, "in the exam, ") for exam in workload.exams(case)))
    return next(filter(None, reasons), "")


def _of_graph(problem: Graph) -> str:
    """Why a graph with given weights proves nothing; empty if it does at each site."""
    values = network_reference.run(problem, problem.input(0).astype(np.float64))
    largest = amplification.LARGEST[problem.case.dtype] / amplification.PARTIAL
    if too_large := next((name for name, value in values.items() if not np.abs(value).max() < largest), ""):
        return f"the value of {too_large} is not finite in {problem.case.dtype}"
    sites = [operation for operation in problem.operations() if isinstance(operation, Neurons)]
    for site in sites:
        quietest = problem.neuron(site).QUIETEST
        if reason := out_of_window(float(values[site.name].mean()), quietest=quietest):
            return f"the neurons {site.name} are {reason}"
    back = network_reference.run_back(problem, values, problem.cotangent(0).astype(np.float64))
    for site in sites:
        if not back.arriving[site.name].any():
            return f"no gradient arrives at the neurons {site.name}"
    if not all(np.abs(each).max() < largest for each in (*back.arriving.values(), *back.gradients)):
        return f"its gradient reaches numbers that {problem.case.dtype} does not hold"
    return ""


@cache
def _of(problem: Problem, where: str = "") -> str:
    """Why this problem proves nothing; the exam's neurons always fire."""
    case, dtype = problem.case, problem.case.dtype
    layers = [(round_to(weight, case.product_format), round_to(bias, dtype)) for weight, bias in problem.layers()]
    inputs, cotangent = (round_to(array, dtype) for array in (problem.input(0), problem.cotangent(0)))
    traces = reference.network_forward(layers, inputs, case)
    if not problem.exact:
        for trace in traces if case.is_judged_by_layer else traces[-1:]:
            if reason := out_of_window(float(trace.spikes.mean())):
                return reason
        if case.is_judged_by_layer:
            return ""  # each layer has a gradient of its own
    backpropagation = amplification.Backpropagation(layers, inputs, traces, cotangent, rule_of(case), case)
    gradients = backpropagation.gradients
    if not (largest := np.abs(gradients.input).max()):
        return f"{where}its gradient is zero: no potential comes near the threshold at slope {case.slope:.3g}"
    if not largest < amplification.LARGEST[dtype] / amplification.PARTIAL:
        return f"{where}its gradient reaches {largest:.2g}, and sums of it more than {dtype} holds"
    (run,) = backpropagation.errors(runs=1)
    allowed = amplification.allowed(gradients.input, [run.input], dtype)
    return "" if allowed <= UNPROVABLE else f"{where}{moved('its gradient', allowed)}"


def _changes(case: Case, reason: str) -> Iterator[tuple[str, Any]]:
    """Other values of one field, the likeliest first."""
    if "spikes" in reason:
        factor = 0.5 if "silent" in reason else 2.0
        yield from (("threshold", case.threshold * factor**power) for power in range(1, 9))
        yield from (("beta", beta) for beta in (0.9, 0.5))
    else:
        yield from (("dtype", dtype) for dtype in ("float32",) if dtype != case.dtype)
        yield from (("slope", case.slope / 4**power) for power in range(1, 5))
        yield "time_steps", min(50, case.time_steps)
    yield from ((name, size) for name, size in SMALL.items() if name in case.names())
