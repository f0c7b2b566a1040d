"""Tests of the spot check's distance: how far another neuron's answer is from the case's own, without a complaint."""

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.proof.comparison import Finding
from snnbench.proof.spotcheck import SpotCheck, sampled
from snnbench.workloads.linear_lif import Problem
from tests.fakes import CASE
from tests.proof.test_spotcheck import ALL_NS, rounded_answer


def test_distance_of_another_neuron() -> None:
    """Both run freely: the check compares two spike trains, and no difference is a complaint."""
    problem = Problem(CASE.with_(neurons=200))
    other = Problem(CASE.with_(neurons=200, threshold=1.5))
    (weight, bias), entering = problem.layers()[0], problem.input(1).astype(np.float64)
    current = entering @ weight.astype(np.float64).T + bias
    case_s, its = reference.forward(current, problem.case), reference.forward(current, other.case)
    gradient = reference.backward(problem.cotangent(1).astype(np.float64), case_s, problem.case)
    given = np.random.default_rng(1).normal(size=(200, 200))
    neurons = sampled(200, 32, 5)
    finding = SpotCheck(problem, 1, seed=5).distance(Answer(its.spikes, [given]))
    mine, theirs = case_s.spikes[:, :, neurons], its.spikes[:, :, neurons]
    assert finding.compared == 20 * 7 * 32
    assert finding.differing == int((mine != theirs).sum()) > 0
    assert finding.expected_rate == pytest.approx(mine.mean(), rel=1e-12)
    assert finding.rate == pytest.approx(theirs.mean(), rel=1e-12)
    expected = np.einsum("tbn,tbm->nm", gradient, entering)[neurons]
    error = np.linalg.norm(given[neurons] - expected) / np.linalg.norm(expected)
    cosine = (given[neurons] * expected).sum() / np.linalg.norm(given[neurons]) / np.linalg.norm(expected)
    assert finding.gradient_errors == {"weight": pytest.approx(error, rel=1e-9)}
    assert finding.cosines == {"weight": pytest.approx(cosine, rel=1e-6)}
    assert (finding.neurons, finding.samples, finding.seed, finding.complaints) == (32, 0, 5, [])


def test_full_distance_has_no_seed() -> None:
    problem = Problem(CASE)
    answer = rounded_answer(problem, 0, 0, "float32", "float32")
    finding = SpotCheck(problem, 0, budget_ns=ALL_NS, seed=5).distance(Answer(answer.spikes))
    assert (finding.neurons, finding.samples, finding.seed) == (48, 0, None)
    assert (finding.compared, finding.differing, finding.gradient_errors) == (20 * 7 * 48, 0, {})


def test_distance_needs_one_layer_and_the_right_shape() -> None:
    two = Problem(CASE.with_(layers=2))
    answer = rounded_answer(two, 0, 0, "float32", "float32")
    assert SpotCheck(two, 0).distance(answer).compared == 0
    check = SpotCheck(Problem(CASE), 0)
    for spikes in (None, np.zeros((7, 20, 48)), np.zeros((20, 7, 40))):
        assert check.distance(Answer(spikes)) == Finding()
