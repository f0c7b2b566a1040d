"""Tests of the tolerance by a case's own recurrence: near what right programs need, and no wider."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.rule import rule_of
from snnbench.proof import amplification
from snnbench.proof.tolerance import out_of_window, round_to
from snnbench.workloads import linear_lif
from snnbench.workloads.lif import Problem
from tests.fakes import CASE, LIF
from tests.programs import STYLES, Array, Program


def allowed(problem: Problem, dtype: Any = "float32") -> tuple[float, Array]:
    """The tolerance of the gradient of a problem's currents, and the gradient."""
    case, rule = problem.case.with_(dtype=dtype), rule_of(problem.case)
    current, cotangent = (round_to(array, dtype) for array in (problem.input(0), problem.cotangent(0)))
    trace = reference.forward(current, rule)
    expected = reference.backward(cotangent, trace, rule)
    return amplification.allowed(expected, amplification.errors(current, trace, cotangent, rule, case), dtype), expected


@pytest.mark.parametrize(
    "changes",
    [
        {"slope": 25.0},
        {"slope": 100.0, "surrogate": "sigmoid"},
        {"slope": 50.0, "surrogate": "triangle"},
        {"beta": 1.0, "reset": "none", "detach_reset": True},
        {"beta": 0.999, "slope": 10.0, "detach_reset": False},
        {"slope": 5.0, "surrogate": "atan", "reset": "zero", "detach_reset": True, "beta": 0.5},
    ],
    ids=str,
)
def test_tolerance_is_a_few_times_what_right_programs_need(changes: dict[str, Any]) -> None:
    problem = Problem(LIF.with_(time_steps=200, batch=6, neurons=24, **changes))
    tolerance, expected = allowed(problem)
    errors = [np.linalg.norm(Program(style)(problem, 0).input - expected) for style in STYLES]  # type: ignore[operator]
    assert 1.2 < tolerance / (max(errors) / np.linalg.norm(expected)) < 40  # most where a decay may be off


def test_tolerance_follows_the_format_and_the_slope() -> None:
    problem = Problem(LIF.with_(slope=5.0))
    narrow, half = allowed(problem)[0], allowed(problem, "bfloat16")[0]
    assert 2.0**15 < half / narrow < 2.0**17
    assert allowed(Problem(LIF.with_(slope=50.0)))[0] > 3 * narrow


def test_rounding_crosses_no_jump_in_full_precision() -> None:
    """The check settles each jump by itself; a tolerance by crossed jumps would hide wrong gradients elsewhere."""
    assert allowed(Problem(LIF.with_(surrogate="rectangle", slope=50.0, time_steps=400)))[0] < 1e-5


def test_gradient_of_zero_allows_no_error() -> None:
    assert amplification.allowed(np.zeros(3), [np.zeros(3)], "float32") == 0
    assert amplification.allowed(np.zeros(3), [np.zeros(3), np.ones(3)], "float32") == np.inf
    assert amplification.allowed(np.full(4, 2.0), [np.zeros(4), np.ones(4)], "float32") == amplification.FACTOR / 2


@pytest.mark.parametrize(
    ("size", "dtype", "is_told"),
    [(4000.0, "float16", True), (5000.0, "float16", False), (1e30, "float32", True), (1e38, "float32", False)],
)
def test_gradient_whose_sums_leave_the_format_is_not_told(size: float, dtype: str, is_told: bool) -> None:
    assert (amplification.allowed(np.full(3, size), [np.zeros(3)], dtype) < np.inf) is is_told


@pytest.mark.parametrize(
    ("rate", "most", "word"), [(0.009, 1, "silent"), (0.01, 1, ""), (0.9, 1, ""), (0.91, 1, "busy"), (1.8, 2, "")]
)
def test_rates_outside_of_the_window_prove_nothing(rate: float, most: int, word: str) -> None:
    reason = out_of_window(rate, most)
    assert word in reason and bool(reason) == bool(word)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_half_of_the_smallest_number_is_rounded_to_nothing(dtype: str) -> None:
    half = amplification.SMALLEST[dtype]
    if dtype == "float32":
        assert 2 * half == np.finfo(np.float32).smallest_subnormal
    else:
        assert [round_to(np.float32([factor * half]), dtype).item() for factor in (1, 1.01)] == [0, 2 * half]


def test_rounding_moves_the_gradients_of_stacked_layers_little() -> None:
    case = CASE.with_(layers=3)
    problem = linear_lif.Problem(case)
    layers = [(weight.astype(float), bias.astype(float)) for weight, bias in problem.layers()]
    inputs, cotangent = problem.input(0).astype(float), problem.cotangent(0).astype(float)
    traces = reference.network_forward(layers, inputs, case)
    backpropagation = amplification.Backpropagation(layers, inputs, traces, cotangent, rule_of(case), case)
    (errors,) = backpropagation.errors(runs=1)
    for error, right in zip(errors.weights, backpropagation.gradients.weights, strict=True):
        assert 1e-9 < np.linalg.norm(error) / np.linalg.norm(right) < 1e-5


@pytest.mark.parametrize(
    ("changes", "size"),
    [({}, 1.793e-6), ({"beta": 0.05}, 5.362e-7), ({"gain": 0.09}, 2.397e-6)],
    ids=str,
)
def test_tolerance_of_a_rule_is_the_one_of_past_verdicts(changes: dict[str, Any], size: float) -> None:
    """No other program computes it, and every term of it decides about libraries."""
    rule, problem = replace(rule_of(LIF), **changes), Problem(LIF)
    for scale in (1.0, 2.0**-20):
        current, cotangent = problem.input(0).astype(float), scale * problem.cotangent(0).astype(float)
        trace = reference.forward(current, rule)
        errors = amplification.errors(current, trace, cotangent, rule, LIF)
        allowed = amplification.allowed(reference.backward(cotangent, trace, rule), errors, "float32")
        assert allowed == pytest.approx(size, rel=1e-3)
