"""The state of a library that needs a reset before every pass: what a second pass without a reset does.

It enters a record's settings and decides nothing, because every timed pass begins with the reset.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.backends import Session
from snnbench.cases import network_reference, reference
from snnbench.cases.problem import Graph, Problem

OUTPUT_ROUNDING = 1e-4
"""Rounding of an exam's output, whose terms are sixteenths of small means; spikes are equal or 1 apart."""


def of(session: Session, problem: Problem) -> dict[str, str]:
    """The setting `state` for an exam's session: whether a second pass continues, restarts, or does neither.

    Empty for a library without a reset.
    """
    go_on = getattr(session, "inference_without_reset", None)
    if go_on is None:
        return {}
    session.load(0, 0)
    session.synchronise(session.inference())
    session.load(1, 1)
    spikes = go_on()
    if spikes is None:
        return {}
    session.synchronise(spikes)
    return {"state": continuation(problem, session.answer(spikes, None).spikes)}


def continuation(problem: Problem, spikes: NDArray[Any] | None) -> str:
    """How a second pass, on input 1 after input 0 without a reset, treats the state of the first.

    "continues" if its spikes [T, B, N] are those of both inputs in a row, "restarts" if they are those of input 1
    alone, else "neither".
    """
    first, second = (problem.input(which).astype(np.float64) for which in (0, 1))
    in_a_row, alone = _outputs(problem, np.concatenate([first, second]))[len(first) :], _outputs(problem, second)
    for kind, expected in (("continues", in_a_row), ("restarts", alone)):
        if spikes is None or spikes.shape != expected.shape:
            continue
        if np.allclose(spikes, expected, rtol=0, atol=OUTPUT_ROUNDING):
            return kind
    return "neither"


def _outputs(problem: Problem, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The spikes, or the outputs of a network of operations, for inputs of any number of time steps."""
    if isinstance(problem, Graph):
        network = problem.operations()
        values = network_reference.run(problem, inputs)
        return values[network[-1].name].reshape(*inputs.shape[:2], -1)
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    return reference.network_forward(layers, inputs, problem.case)[-1].spikes
