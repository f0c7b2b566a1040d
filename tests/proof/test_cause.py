"""Tests that the exam names the cause of a wrong answer, and only then."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.problem import Problem
from snnbench.cases.rule import Rule, rule_of
from snnbench.proof import exam
from snnbench.proof.cause import GRADIENT_CARRIED, GRADIENT_CUT, STATE_KEPT, STATE_LOST, of_gradient
from snnbench.workloads import lif, linear_lif
from tests.fakes import CASE, CUT, LIF
from tests.programs import Program

ATTACHED = {"reset": "subtract", "detach_reset": False}


def cause(case: Case, run: Callable[[Problem, int, int], Answer], layers: int = 1) -> str:
    """The cause that the exam names for a library with this pass."""
    problem = lif.exams(case)[0] if isinstance(case, lif.Case) else linear_lif.exam(case, layers)
    finding = exam.run_exam(problem, lambda which, cotangent: run(problem, which, cotangent))
    assert finding.complaints
    return finding.cause


def by(change: Callable[[Rule], Rule]) -> Any:
    """A pass of neurons with a changed rule."""

    def run(problem: Problem, which: int, cotangent: int) -> Answer:
        rule = change(rule_of(problem.case))
        layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
        inputs, arriving = (np.float64(a) for a in (problem.input(which), problem.cotangent(cotangent)))  # type: ignore[arg-type]
        traces = reference.network_forward(layers, inputs, rule)
        got = reference.network_backward(layers, inputs, traces, arriving, rule)
        return Answer(traces[-1].spikes, got.weights, got.biases, got.input)

    return run


def kept(problem: Problem, which: int, cotangent: int) -> Answer:
    """A pass that goes on from the pass on input 0."""
    right = Program()(problem, which, cotangent)
    if not which:
        return right
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    in_a_row = np.concatenate([problem.input(0), problem.input(1)]).astype(np.float64)
    steps = problem.case.time_steps
    return replace(right, spikes=reference.network_forward(layers, in_a_row, problem.case)[-1].spikes[steps:])


def restarted(problem: Problem, which: int, cotangent: int) -> Answer:
    """A pass that starts anew in each chunk."""
    right, case = Program()(problem, which, cotangent), problem.case
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    chunks = np.split(problem.input(which).astype(np.float64), case.time_steps // case.chunk_steps)  # type: ignore[attr-defined]
    return replace(
        right, spikes=np.concatenate([reference.network_forward(layers, each, case)[-1].spikes for each in chunks])
    )


def late(problem: Problem, which: int, cotangent: int) -> Answer:
    """A pass whose spikes come one step late."""
    right = Program()(problem, which, cotangent)
    assert right.spikes is not None
    return replace(right, spikes=np.concatenate([0 * right.spikes[:1], right.spikes[:-1]]))


def scaled(problem: Problem, which: int, cotangent: int) -> Answer:
    """A pass that divides its gradients by the batch size."""
    right = Program()(problem, which, cotangent)
    assert right.weights and right.biases and right.input is not None
    return Answer(right.spikes, [right.weights[0] / 5], [right.biases[0] / 5], right.input / 5)


def negated(problem: Problem, which: int, cotangent: int) -> Answer:
    """A pass with the right spikes, and the gradient of the negative loss."""
    right = Program()(problem, which, cotangent)
    assert right.weights and right.biases and right.input is not None
    return Answer(right.spikes, [-right.weights[0]], [-right.biases[0]], -right.input)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (kept, "state is kept between passes"),
        (late, "LATENCY = 1"),
        (Program(fault="late reset"), "one step late"),
        (Program(fault="reset"), "sets the potential to zero"),
        (Program(fault="attachment"), "the reset is detached"),
        (Program(fault="surrogate"), "the surrogate is atan with slope 1"),
        (by(lambda rule: replace(rule, reset="none")), "nothing is reset"),
        (by(lambda rule: rule.resetting_after_decay()), "after the decay"),
        (by(lambda rule: replace(rule, gain=0.5)), "1 - beta"),
        (by(lambda rule: replace(rule, surrogate_gain=25.0, slope=25.0)), "slope 25, times its slope"),
        (by(lambda rule: replace(rule, surrogate_gain=1 / 25.0, slope=25.0)), "slope 25, divided by its slope"),
        (by(lambda rule: replace(rule, slope=100.0)), "slope 100"),
        (scaled, "0.2 times"),
        (negated, "wrong sign"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_known_mistake_is_named(run: Any, words: str) -> None:
    assert words in cause(CASE.with_(**ATTACHED), run)


CARRIED = CUT | {"carried_gradient": True}


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(
    ("chunks", "run", "words"),
    [
        (CUT, by(lambda rule: replace(rule, detach_every=0)), GRADIENT_CARRIED),
        (CARRIED, by(lambda rule: replace(rule, detach_every=3)), GRADIENT_CUT),
        (CUT, restarted, STATE_LOST),
        (CARRIED, restarted, STATE_LOST),
        (CUT, kept, STATE_KEPT),
        (CARRIED, kept, STATE_KEPT),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistake_at_the_border_of_a_chunk_is_named(chunks: Any, run: Any, words: str, layers: int) -> None:
    assert cause(CASE.with_(**ATTACHED, **chunks), run, layers) == words


def test_cause_of_stacks_and_of_neurons_alone() -> None:
    assert "one step late" in cause(CASE.with_(**ATTACHED), Program(fault="late reset"), layers=2)
    assert "sets the potential to zero" in cause(LIF.with_(**ATTACHED), Program(fault="reset"))
    assert "one step late" in cause(LIF.with_(**ATTACHED), Program(fault="late reset"))


@pytest.mark.parametrize(("off", "is_named"), [(5e-5, True), (2e-4, False)])
@pytest.mark.parametrize("drive", [0.01, 100.0])
def test_gradient_is_the_same_by_its_relative_error(off: float, is_named: bool, drive: float) -> None:
    problem = linear_lif.exam(CASE.with_(**ATTACHED), 1)
    problem.put(0, problem.input(0), np.float32(drive) * problem.cotangent(0))
    wrong = Program(fault="surrogate")(problem, 0)
    assert wrong.input is not None
    noise = np.random.default_rng(1).normal(size=wrong.input.shape)
    noise *= off * np.linalg.norm(wrong.input) / np.linalg.norm(noise)
    assert bool(of_gradient(problem, 0, 0, replace(wrong, input=wrong.input + noise))) is is_named


@pytest.mark.parametrize("fault", ["last step", "short memory", "carried state"])
def test_unknown_mistake_has_no_cause(fault: str) -> None:
    assert cause(CASE.with_(**ATTACHED), Program(fault=fault)) == ""


def test_first_wrong_neuron_is_shown_step_by_step() -> None:
    problem = linear_lif.exam(CASE.with_(**ATTACHED), 1)
    finding = exam.run_exam(problem, lambda which, cotangent: late(problem, which, cotangent))
    right = reference.network_forward(
        [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()],
        problem.input(0).astype(np.float64),
        problem.case,
    )[-1]
    t, b, n = (int(axis[0]) for axis in np.nonzero(late(problem, 0, 0).spikes != right.spikes))
    step, _, potential, expected, got = finding.steps[t]
    assert (step, potential, expected, got) == (t, right.potential[t, b, n], right.spikes[t, b, n], 1 - expected)
