"""Tests of the exam: an answer passes if all three passes are right, and the first wrong pass ends the exam."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snnbench.cases import network_reference, reference
from snnbench.cases.answer import Answer
from snnbench.cases.case import PROFILES
from snnbench.cases.problem import REVERSED
from snnbench.proof import exam, state
from snnbench.workloads import network
from snnbench.workloads.linear_lif import exam as exam_problem
from tests.answers import answer_to
from tests.fakes import CASE, profile
from tests.networks import SMALL


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reference_passes_the_exam_in_three_passes(name: str, layers: int, dtype: Any) -> None:
    problem, passes = exam_problem(CASE.with_(**profile(name), dtype=dtype), layers), []

    def run(which: int, cotangent: int) -> Answer:
        passes.append((which, cotangent))
        return answer_to(problem, which, cotangent, dtype)

    finding = exam.run_exam(problem, run)
    assert finding.correct, finding.message
    assert passes == [(0, 0), (1, 1), (1, REVERSED)]
    assert (finding.compared, finding.differing) == (3 * 8 * 5 * 37, 0)
    names = ["weight", "bias"] if layers == 1 else [f"{w} of layer {n}" for n in (0, 1) for w in ("weight", "bias")]
    assert set(finding.gradient_errors) == {*names, "input"}
    assert 0.03 < finding.rate < 0.6


@pytest.mark.parametrize("first_wrong_pass", [0, 1, 2])
def test_exam_ends_at_the_first_wrong_pass(first_wrong_pass: int) -> None:
    problem, passes = exam_problem(CASE, 1), []

    def run(which: int, cotangent: int) -> Answer:
        passes.append((which, cotangent))
        right = answer_to(problem, which, cotangent)
        return replace(right, input=-right.input) if len(passes) == first_wrong_pass + 1 else right

    finding = exam.run_exam(problem, run)
    assert "gradient of input is off by 2 " in finding.message
    assert len(passes) == first_wrong_pass + 1


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"spikes": None}, "no spikes"),
        ({"spikes": np.zeros((8, 5, 36))}, "spikes have the shape"),
        ({"weights": None}, "gradient of weight: got shape none"),
        ({"biases": None}, "gradient of bias: got shape none"),
        ({"input": None}, "gradient of input: got shape none"),
    ],
)
def test_exam_requires_spikes_and_all_gradients(change: dict[str, Any], complaint: str) -> None:
    problem = exam_problem(CASE, 1)
    finding = exam.run_exam(problem, lambda *which: replace(answer_to(problem, *which), **change))
    assert finding.message.startswith(complaint)


@pytest.mark.parametrize(
    ("change", "backward", "complaint"),
    [
        ({}, True, ""),
        ({"spikes": None}, True, "no output"),
        ({"weights": None}, True, "gradient of weight of group 1 1 convolution: got shape none"),
        ({"weights": None}, False, ""),
    ],
)
def test_exam_of_a_network_requires_what_is_compared(change: dict[str, None], backward: bool, complaint: str) -> None:
    (problem,) = network.exams(SMALL)
    operations, case = problem.operations(), problem.case

    def run(which: int, cotangent: int) -> Answer:
        inputs, arriving = problem.input(which).astype(np.float64), problem.cotangent(cotangent).astype(np.float64)
        values = network_reference.run(problem, inputs)
        gradients = network_reference.run_back(problem, values, arriving).gradients
        return replace(Answer(values[operations[-1].name].reshape(case.shape), gradients), **change)

    finding = exam.run_exam(problem, run, backward)
    assert finding.message.startswith(complaint) and finding.correct is (not complaint)
    assert 0.05 < finding.rate < 0.5


@pytest.mark.parametrize("given", PROFILES)
@pytest.mark.parametrize("examined", PROFILES)
def test_profile_passes_only_its_own_exam(given: str, examined: str) -> None:
    problem = exam_problem(CASE.with_(**profile(examined)), 1)
    other = problem.case.with_(**profile(given))
    finding = exam.run_exam(problem, lambda *which: answer_to(problem, *which, case=other))
    assert finding.correct is (given == examined)


def test_gradient_that_ignores_time_fails_the_third_pass() -> None:
    """This fake memorised the answers to both cotangents."""
    problem = exam_problem(CASE, 1)
    known = {which: answer_to(problem, which, which) for which in (0, 1)}
    finding = exam.run_exam(problem, lambda which, cotangent: known[which])
    assert finding.message.startswith("gradient of weight is off by")


@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_second_pass_continues_restarts_or_does_neither(reset: Any) -> None:
    problem = exam_problem(CASE.with_(reset=reset, detach_reset=reset == "zero"), 1)
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    both = np.concatenate([problem.input(0), problem.input(1)]).astype(np.float64)
    in_a_row = reference.network_forward(layers, both, problem.case)[-1].spikes[len(problem.input(0)) :]
    alone = reference.network_forward(layers, problem.input(1).astype(np.float64), problem.case)[-1].spikes
    assert state.continuation(problem, in_a_row) == "continues"
    assert state.continuation(problem, alone) == "restarts"
    mixed = np.concatenate([in_a_row[:, :2], alone[:, 2:]], 1)
    assert state.continuation(problem, mixed) == state.continuation(problem, None) == "neither"
