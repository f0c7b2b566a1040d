"""Tests of the check of several layers: a sample may diverge only if rounding explains it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.problem import Layer
from snnbench.cases.rule import Rule, rule_of
from snnbench.proof.comparison import Finding
from snnbench.proof.network_check import NetworkCheck
from snnbench.proof.spotcheck import SpotCheck
from snnbench.workloads.linear_lif import Problem
from tests.answers import answer_to
from tests.fakes import CASE
from tests.proof.test_spotcheck_answers import Given

NUMBERS: dict[str, Any] = {
    "beta": 0.5,
    "threshold": 1.0,
    "reset": "subtract",
    "detach_reset": False,
    "surrogate": "fast_sigmoid",
    "slope": 1.0,
}


def complaints(rule: Rule, weight: float, bias: float) -> list[str]:
    """Complaints about one spike too many: of the only neuron, in the first step of the first of two samples."""
    case = CASE.with_(neurons=1, batch=2, time_steps=1, layers=1)
    layers = [(np.full((1, 1), weight, np.float32), np.full(1, bias, np.float32))]
    ones = np.ones((1, 2, 1), np.float32)
    check = NetworkCheck(case, rule, layers, ones, ones)
    spikes = check.traces[-1].spikes.copy()
    assert not spikes.any()
    spikes[0, 0, 0] = 1.0
    finding = Finding()
    check.check(finding, Answer(spikes), spikes, lambda summed: 1e-6)
    return finding.complaints


@pytest.mark.parametrize(("weight", "bias"), [(0.999, 0.0), (400.999, -400.0), (1000.999, -1000.0)])
def test_large_negative_bias_widens_the_margin(weight: float, bias: float) -> None:
    """A current of 0.999 is 0.001 below the threshold; float32 holds 1000.999 to 0.00003."""
    assert (complaints(Rule(**NUMBERS), weight, bias) == []) is (bias != 0.0)


@pytest.mark.parametrize(("weight", "bias", "is_close"), [(0.6, 0.15, True), (0.6, 0.2, False)])
def test_fixed_point_current_on_a_multiple_may_be_one_unit_off(weight: float, bias: float, is_close: bool) -> None:
    """0.75 is a multiple of 1/4, and one more is the threshold; 0.8 is cut to 0.75 with certainty."""
    assert (complaints(Rule(**NUMBERS, unit=0.25), weight, bias) == []) is is_close


def test_every_sample_of_several_layers_is_compared() -> None:
    problem = Problem(CASE.with_(layers=2))
    right = answer_to(problem, 1, 1).spikes
    assert right is not None
    wrong = right.copy()
    wrong[:, 2:4] = 0
    assert "spikes differ, the first at t=" in SpotCheck(problem, 1).check(Answer(wrong)).message
    alone = Problem(CASE.with_(layers=2, batch=1))
    right = answer_to(alone, 1, 1).spikes
    assert right is not None
    assert "spikes differ" in SpotCheck(alone, 1).check(Answer(np.zeros_like(right))).message


@pytest.mark.parametrize(("bias", "excused"), [(1.0, True), (1.001, False)])
def test_diverged_sample_is_excused_only_on_the_threshold(bias: float, excused: bool) -> None:
    # If the hidden neuron's potential is the threshold, rounding decides whether it fires. The output neuron follows.
    first = (np.zeros((1, 1), np.float32), np.array([bias], np.float32))
    second = (np.full((1, 1), 2, np.float32), np.zeros(1, np.float32))
    case = CASE.with_(neurons=1, batch=8, time_steps=3, layers=2, beta=0.0)
    problem = Given(case, [first, second], np.zeros((3, 8, 1), np.float32))
    spikes = answer_to(problem, 0, 0).spikes  # type: ignore[arg-type]
    assert spikes is not None and spikes[:, 0, 0].tolist() == [1, 1, 1]
    spikes[1, 3, 0] = 0
    finding = SpotCheck(problem, 0).check(Answer(spikes))  # type: ignore[arg-type]
    if excused:
        assert not [said for said in finding.complaints if "differ" in said] and finding.differing == 1
    else:
        assert "the first at t=1, b=3, n=0: u=2, expected 1, got 0" in finding.message


Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Chain:
    """Three neurons. The first hidden one gets these weights from inputs of 1, and the first output follows it.

    It has no memory: each step depends on that step alone.
    """

    enters_as_spikes = True

    weights: tuple[float, float, float]
    batch: int = 8

    @property
    def case(self) -> Case:
        return CASE.with_(neurons=3, batch=self.batch, time_steps=3, layers=2, beta=0.0)

    def layers(self) -> list[Layer]:
        first, second = np.zeros((3, 3), np.float32), np.zeros((3, 3), np.float32)
        first[0], second[0, 0] = self.weights, 2.0
        return [(first, np.zeros(3, np.float32)), (second, np.zeros(3, np.float32))]

    def input(self, which: int) -> Array:
        return np.ones((3, self.batch, 3), np.float32)

    def cotangent(self, which: int) -> Array:
        return np.ones((3, self.batch, 3), np.float32)


def flipped(problem: Chain, fires: bool, *indices: tuple[int, int]) -> Answer:
    """The right spikes, except for the first output neuron at these (step, sample)."""
    spikes = np.zeros((3, problem.batch, 3))
    spikes[..., 0] = fires
    for t, b in indices:
        spikes[t, b, 0] = 1 - fires
    return Answer(spikes)


@pytest.mark.parametrize(
    ("weights", "excused"),
    [
        ((0.0, 0.0, 1 + 60 * 2.0**-24), True),  # within 32 roundoffs of 1 and of 1, and two of the state
        ((0.0, 0.0, 1 + 70 * 2.0**-24), False),
        ((8.0, -8.0, 1 + 570 * 2.0**-24), True),  # of 1 and of 17 terms
        ((8.0, -8.0, 1 + 590 * 2.0**-24), False),
    ],
)
def test_diverged_sample_is_excused_within_the_hidden_margin(
    weights: tuple[float, float, float], excused: bool
) -> None:
    problem = Chain(weights)
    finding = SpotCheck(problem, 0).check(flipped(problem, True, (1, 3)))  # type: ignore[arg-type]
    assert (finding.correct, finding.differing) == (excused, 1)
    assert finding.compared == 3 * 3 * (7 if excused else 8), "a sample that is set aside is not compared"


def test_number_of_diverged_samples_is_limited() -> None:
    on_the_threshold = (0.0, 0.0, 1.0)
    problem = Chain(on_the_threshold)
    once, twice = flipped(problem, True, (1, 3)), flipped(problem, True, (1, 3), (0, 5))
    assert SpotCheck(problem, 0).check(once).correct  # type: ignore[arg-type]
    assert "2 of 72 spikes differ" in SpotCheck(problem, 0).check(twice).message  # type: ignore[arg-type]
    alone = Chain(on_the_threshold, batch=1)
    finding = SpotCheck(alone, 0).check(flipped(alone, True, (1, 0)))  # type: ignore[arg-type]
    assert finding.correct and "diverts every sample" in finding.unprovable


@pytest.mark.parametrize(("weight", "excused"), [(1 - 2.0**-22, True), (0.9, False)])
def test_fixed_point_sample_may_diverge_next_to_a_multiple(weight: float, excused: bool) -> None:
    """Both are truncated to 0.75, a quarter below the threshold; rounding may move the first to 1."""
    problem = Chain((0.0, 0.0, weight))
    numbers = {name: getattr(rule_of(problem.case), name) for name in Rule.__dataclass_fields__}
    check = SpotCheck(problem, 0, Rule(**(numbers | {"unit": 0.25})), guarded=False)  # type: ignore[arg-type]
    assert check.check(flipped(problem, False)).correct
    assert check.check(flipped(problem, False, (1, 3))).correct is excused


@pytest.mark.parametrize(("weight", "is_close"), [(1.0, True), (1.5, False)])
def test_hidden_spike_that_rounding_decides_may_be_on_either_side(weight: float, is_close: bool) -> None:
    """A hidden neuron on the threshold moves no output, but the gradient of the next layer's weight is by its spike."""
    case = CASE.with_(neurons=1, batch=1, time_steps=1, layers=2)
    zero = np.zeros(1, np.float32)
    layers = [(np.full((1, 1), value, np.float32), zero) for value in (weight, 0.01)]
    ones = np.ones((1, 1, 1), np.float32)
    check = NetworkCheck(case, Rule(**NUMBERS), layers, ones, ones)
    fired = [trace.spikes for trace in check.traces]
    assert [spikes.item() for spikes in fired] == [1.0, 0.0]
    silent = check._gradients_with([np.zeros_like(fired[0]), fired[1]])
    finding = Finding()
    check.check(finding, Answer(fired[1], silent.weights, silent.biases, silent.input), fired[1], lambda summed: 1e-6)
    assert finding.correct is is_close


def test_hidden_neuron_goes_on_from_a_spike_that_rounding_decides() -> None:
    """It fires on the threshold in the first step, or else in the second one."""
    case = CASE.with_(neurons=1, batch=1, time_steps=2, layers=2)
    zero, cotangent = np.zeros(1, np.float32), np.ones((2, 1, 1), np.float32)
    layers = [(np.full((1, 1), value, np.float32), zero) for value in (1.0, 0.01)]
    check = NetworkCheck(case, Rule(**NUMBERS), layers, np.array([[[1]], [[0.7]]], np.float32), cotangent)
    fired = [trace.spikes for trace in check.traces]
    assert fired[0].ravel().tolist() == [1.0, 0.0] and not fired[1].any()
    late = check._gradients_with([fired[0][::-1], fired[1]])
    finding = Finding()
    check.check(finding, Answer(fired[1], late.weights, late.biases, late.input), fired[1], lambda summed: 1e-6)
    assert finding.correct, finding.message
