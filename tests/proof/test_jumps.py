"""Tests of surrogates that jump: rounding decides on the side of a jump only where the potential is at the jump."""

from dataclasses import replace

import numpy as np
import pytest

from snnbench.cases.answer import Answer
from snnbench.cases.problem import Problem
from snnbench.cases.rule import rule_of
from snnbench.proof import following
from snnbench.proof.comparison import Finding
from snnbench.proof.jumps import _beyond, settled
from snnbench.proof.spotcheck import SpotCheck
from snnbench.workloads import lif, linear_lif
from tests.answers import answer_to
from tests.fakes import CASE, LIF

EDGE = np.nextafter(np.float32(-0.2), np.float32(0))
"""Half of 1 below a threshold of 0.3: in float64 a little nearer than half, in float32 exactly half."""
NEURON = {"threshold": 0.3, "surrogate": "rectangle", "slope": 1.0}


def alone() -> Problem:
    """Currents, with one at the edge in the first step."""
    problem = lif.Problem(LIF.with_(**NEURON))
    currents = problem.input(0).copy()
    currents[0, 0, 1] = EDGE
    problem.put(0, currents, problem.cotangent(0))
    return problem


def layer() -> Problem:
    """A layer without an input in the first step of one sample, so that the bias alone is at the edge."""
    problem = linear_lif.Problem(CASE.with_(**NEURON))
    entering = problem.input(0).copy()
    entering[0, 0] = 0
    problem.layers()[0][1][1] = EDGE
    problem.put(0, entering, problem.cotangent(0))
    return problem


def answers(problem: Problem) -> tuple[SpotCheck, Answer]:
    """The check, and an answer in float32."""
    return SpotCheck(problem, 0, budget_ns=10**12), answer_to(problem, 0, 0, "float32")  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [alone, layer])
def test_either_side_of_a_jump_is_right(make: object) -> None:
    check, answer = answers(make())  # type: ignore[operator]
    assert not check.check(answer).complaints


@pytest.mark.parametrize("make", [alone, layer])
def test_without_the_rule_float32_is_wrong(make: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The problems do have a jump between float32 and float64."""
    monkeypatch.setattr(following, "near_jumps", lambda trace, rule: np.zeros(trace.potential.shape, bool))
    check, answer = answers(make())  # type: ignore[operator]
    assert "is off by" in check.check(answer).message


def test_a_gradient_that_is_wrong_elsewhere_is_found() -> None:
    check, answer = answers(alone())
    assert answer.input is not None
    wrong = answer.input.copy()
    wrong[4, 2, 3] += 1
    assert "gradient of input is off by" in check.check(replace(answer, input=wrong)).message


def test_smooth_surrogates_have_no_jumps() -> None:
    problem = lif.Problem(LIF.with_(surrogate="fast_sigmoid"))
    check, answer = answers(problem)
    followed = check._compare(Finding(), "few", check._few, np.asarray(answer.spikes, np.float64))
    assert followed.jumps == []


def test_only_the_step_at_the_edge_is_a_jump() -> None:
    check, answer = answers(alone())
    followed = check._compare(Finding(), "few", check._few, np.asarray(answer.spikes, np.float64))
    assert [(jump.sample, jump.neuron) for jump in followed.jumps] == [(0, 1)]


@pytest.mark.parametrize(("got", "result"), [(0.04, 0.0), (0.06, 0.1)])
def test_change_is_made_if_it_brings_the_gradient_nearer(got: float, result: float) -> None:
    assert settled(np.zeros(1), np.array([got]), [(..., np.array([0.1]))]) == result


@pytest.mark.parametrize("edge", [-0.005, 0.005])
def test_slope_beyond_an_edge_is_that_of_the_other_side(edge: float) -> None:
    rule = replace(rule_of(CASE), surrogate="rectangle", slope=100.0)
    assert (_beyond(edge, 1.0, rule), _beyond(edge, 0.0, rule)) == (0.0, 1.0)
