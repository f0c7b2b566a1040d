"""Tests of inputs, weights and cotangents: made from the seed, and the same for every library."""

import hashlib
import os
from typing import Any

import numpy as np
import pytest

from snnbench.cases import problem
from snnbench.cases.problem import EXAM_SHAPE, REVERSED
from snnbench.proof.spotcheck import SpotCheck
from snnbench.proof.tolerance import round_to
from snnbench.workloads.linear_lif import BIAS_SCALE, WEIGHT_SCALE, Problem
from snnbench.workloads.linear_lif import exam as exam_problem
from tests.fakes import CASE, profile

LARGE = Problem(CASE.with_(time_steps=50, batch=16, neurons=128, layers=2))


def arrays(problem: Problem) -> list[np.ndarray]:
    """All that a problem hands to a library."""
    pairs = [array for layer in problem.layers() for array in layer]
    return [*pairs, *(problem.input(which) for which in (0, 1)), *(problem.cotangent(which) for which in (0, 1, 2))]


def fingerprint(problem: Problem) -> str:
    """A few digits that stand for every bit of a problem."""
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays(problem))).hexdigest()[:16]


@pytest.mark.parametrize(
    "change",
    [
        {"device": "cuda"},
        {"dtype": "float64"},
        {"dtype": "bfloat16"},
        {"precision": "tf32"},
        {"threads": 8},
        {"input_gradient": False},
        {"surrogate": "atan", "slope": 2.0},
        {"beta": 0.5, "threshold": 2.0},
        profile("zero"),
    ],
)
def test_execution_settings_do_not_change_the_problem(change: dict[str, Any]) -> None:
    assert fingerprint(Problem(CASE.with_(**change))) == fingerprint(Problem(CASE))


@pytest.mark.parametrize("change", [{"seed": 8}, {"neurons": 49}, {"batch": 8}, {"time_steps": 21}, {"layers": 2}])
def test_another_size_or_seed_is_another_problem(change: dict[str, Any]) -> None:
    assert fingerprint(Problem(CASE.with_(**change))) != fingerprint(Problem(CASE))


def test_problem_is_the_same_with_every_machine_and_numpy() -> None:
    assert fingerprint(Problem(CASE)) == "3644c12f5bc51a4b"
    assert fingerprint(exam_problem(CASE, 2)) == "a0dd2013490d56b4"


def test_large_array_is_drawn_in_blocks_that_differ_and_do_not_depend_on_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem, "BLOCK", 1000)
    drawn = problem.gaussian(CASE, "weight", 0, (7, 500))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert np.array_equal(drawn, problem.gaussian(CASE, "weight", 0, (7, 500)))
    assert len(np.unique(drawn)) > 0.99 * drawn.size


def test_every_array_is_a_separate_float32_array() -> None:
    every = arrays(LARGE)
    assert {array.dtype for array in every} == {np.dtype(np.float32)}
    assert all(array.flags.c_contiguous for array in every)
    contents = {array.tobytes() for array in every}
    assert len(contents) == len(every)


def test_shapes() -> None:
    assert [array.shape for array in arrays(Problem(CASE))] == [(48, 48), (48,), *[(20, 7, 48)] * 5]


def test_inputs_are_spikes_at_the_cases_rate() -> None:
    spikes = LARGE.input(0)
    assert set(np.unique(spikes)) == {0.0, 1.0}
    deviation = (0.2 * 0.8 / spikes.size) ** 0.5
    assert abs(spikes.mean() - 0.2) < 5 * deviation


@pytest.mark.parametrize(("rate", "expected"), [(0.0, {0.0}), (1.0, {1.0})])
def test_input_of_rate_0_and_1(rate: float, expected: set[float]) -> None:
    assert set(np.unique(Problem(CASE.with_(input_rate=rate)).input(0))) == expected


def test_cotangents_are_dense_and_normal() -> None:
    cotangent = LARGE.cotangent(0)
    assert np.count_nonzero(cotangent) == cotangent.size
    assert abs(cotangent.mean()) < 5 / cotangent.size**0.5
    assert cotangent.std() == pytest.approx(1, rel=0.01)


def test_third_cotangent_is_the_second_reversed_in_time() -> None:
    assert np.array_equal(LARGE.cotangent(REVERSED), LARGE.cotangent(1)[::-1])
    assert not np.array_equal(LARGE.cotangent(REVERSED), LARGE.cotangent(1))


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.8])
def test_current_does_not_depend_on_size_and_rate(rate: float) -> None:
    weight, bias = Problem(CASE.with_(neurons=256, input_rate=rate)).layers()[0]
    assert weight.std() * (rate * 256) ** 0.5 == pytest.approx(WEIGHT_SCALE, rel=0.02)
    assert bias.std() == pytest.approx(BIAS_SCALE, rel=0.2)


@pytest.mark.parametrize("layers", [1, 2])
def test_exam_rows_have_at_most_six_weights_in_sixteenths(layers: int) -> None:
    for weight, bias in exam_problem(CASE, layers).layers():
        assert np.array_equal(weight * 16, np.round(weight * 16))
        assert np.array_equal(bias * 16, np.round(bias * 16))
        assert ((weight != 0).sum(1) <= 6).all()
        assert np.abs(weight).max() <= 0.5 and np.abs(bias).max() <= 0.5


def test_exam_keeps_the_neuron_and_changes_the_rest() -> None:
    case = CASE.with_(**profile("zero"), surrogate="atan", slope=2.0, input_gradient=False, layers=3)
    sat = exam_problem(case, 2).case
    assert (sat.reset, sat.detach_reset, sat.surrogate, sat.slope, sat.seed) == ("zero", True, "atan", 2.0, case.seed)
    assert (sat.beta, sat.threshold, sat.layers, sat.input_gradient) == (0.5, 1 + 2.0**-13, 2, True)
    assert len({*EXAM_SHAPE.values()}) == 3, "a swapped axis must show in the shape"


@pytest.mark.parametrize(
    ("dtype", "sat_in"),
    [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32"), ("float16", "float32")],
)
def test_exam_of_16_bit_formats_is_in_float32(dtype: str, sat_in: str) -> None:
    assert exam_problem(CASE.with_(dtype=dtype), 1).case.dtype == sat_in


def test_dense_input_is_normal_with_the_current_of_spikes() -> None:
    dense = Problem(CASE.with_(neurons=256, time_steps=50, input_kind="gaussian", input_rate=1.0))
    entering = dense.input(0)
    assert abs(entering.mean()) < 0.02 and abs(entering.std() - 1) < 0.02 and (entering != 0).all()
    assert not np.array_equal(entering, dense.input(1)) and np.array_equal(entering, dense.input(0))
    weight, _ = dense.layers()[0]
    assert abs((entering.reshape(-1, 256) @ weight.T).std() - 0.9) < 0.05
    half = Problem(dense.case.with_(input_rate=0.5)).input(0)
    assert 0.45 < (half != 0).mean() < 0.55 and abs(half[half != 0].std() - 1) < 0.03


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dense_input_is_checked_after_rounding(dtype: Any) -> None:
    problem = Problem(CASE.with_(input_kind="gaussian", input_rate=1.0, dtype=dtype, layers=1))
    check = SpotCheck(problem, 0)
    assert np.array_equal(check.inputs, round_to(problem.input(0), dtype).astype(np.float32))
    assert np.array_equal(check.inputs, problem.input(0)) == (dtype == "float32")
