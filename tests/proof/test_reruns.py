"""Tests of gradients of a second run in which rounding decides a spike otherwise, until the next saved state."""

from dataclasses import replace

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.cases.rule import rule_of
from snnbench.cases.trace import Trace
from snnbench.proof.following import Followed
from snnbench.proof.reruns import _other, reruns
from snnbench.proof.spotcheck import SpotCheck
from snnbench.workloads.linear_lif import Problem
from tests.fakes import CASE

SAMPLE, NEURON = 0, 1
THRESHOLD = 0.3
"""In float32 a little more, so a current of this size is at the threshold, and float64 sees it beyond."""


def problem(**fields: object) -> Problem:
    """A layer without an input in the first step of one sample, so that the bias alone reaches the threshold."""
    made = Problem(CASE.with_(threshold=THRESHOLD, **fields))
    entering = made.input(0).copy()
    entering[0, SAMPLE] = 0
    made.layers()[0][1][NEURON] = np.float32(THRESHOLD)
    made.put(0, entering, made.cotangent(0))
    return made


def answer(given: Problem, saved: int, neuron: int = NEURON, step: int = 0) -> Answer:
    """The answer of a program whose second run has another spike at a step, and saved its state after `saved` steps."""
    (weight, bias), entering = given.layers()[0], given.input(0).astype(np.float64)
    current = entering @ weight.T.astype(np.float64) + bias
    first = reference.forward(current, given.case)
    forced = first.spikes.copy()
    forced[step, SAMPLE, neuron] = 1 - forced[step, SAMPLE, neuron]
    forced[step + 1 :] = np.nan
    second = reference.forward(current, given.case, forced=forced)
    mixed = Trace(first.potential.copy(), first.spikes.copy(), first.decayed.copy())
    for ours, theirs in ((mixed.potential, second.potential), (mixed.spikes, second.spikes)):
        ours[step:saved, SAMPLE, neuron] = theirs[step:saved, SAMPLE, neuron]
    gradient = reference.backward(given.cotangent(0).astype(np.float64), mixed, given.case)
    weights = np.tensordot(gradient, entering, ((0, 1), (0, 1))).astype(np.float32)
    biases, inputs = gradient.sum((0, 1)).astype(np.float32), (gradient @ weight).astype(np.float32)
    return Answer(first.spikes.astype(np.float32), [weights], [biases], inputs)


@pytest.mark.parametrize("saved", [1, 4, 12])
@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_gradient_of_a_second_run_is_right(saved: int, reset: str) -> None:
    given = problem(reset=reset, detach_reset=False)
    finding = SpotCheck(given, 0, budget_ns=10**12).check(answer(given, saved))
    assert finding.correct, finding.message


def test_without_the_rule_it_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The problem does have such a spike."""
    given = problem()
    monkeypatch.setattr(Followed, "reruns", [])
    assert "gradient of weight is off by" in SpotCheck(given, 0, budget_ns=10**12).check(answer(given, 4)).message


def test_second_run_with_another_spike_elsewhere_is_wrong() -> None:
    """Rounding does not decide it."""
    given = problem()
    wrong = answer(given, 4, neuron=NEURON + 1, step=2)
    assert "gradient of weight is off by" in SpotCheck(given, 0, budget_ns=10**12).check(wrong).message


def test_number_of_spikes_changes_at_the_nearest_threshold() -> None:
    rule = replace(rule_of(CASE), threshold=1.0, most_spikes=3)
    assert [_other(u, s, rule) for u, s in ((1.9999, 1.0), (2.0001, 2.0), (2.9999, 2.0), (3.0, 3.0))] == [2, 1, 3, 2]


def test_second_run_has_its_own_later_spikes() -> None:
    """A current a little below the threshold is the second run: without a first spike, the next step has one."""
    current = np.array([1.0, 0.6, 0.1])
    first, second = (reference.forward(current - [off, 0, 0], CASE) for off in (0.0, 1e-9))
    assert (first.spikes.tolist(), second.spikes.tolist()) == ([1, 0, 0], [0, 1, 0])
    gradients = [reference.backward(np.ones(3), trace, CASE) for trace in (first, second)]
    whole = Trace(*(array[:, None, None] for array in (first.potential, first.spikes, first.decayed)))
    near, cotangent = np.array([True, False, False])[:, None, None], np.ones((3, 1, 1))
    (runs,) = reruns(whole, near, current[:, None, None], gradients[0][:, None, None], cotangent, rule_of(CASE))
    assert runs[-1].change == pytest.approx(gradients[1] - gradients[0], abs=1e-6)
