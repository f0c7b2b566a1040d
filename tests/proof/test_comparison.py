"""Tests of comparisons: differing spikes and gradients, the margins that explain them, and the verdict."""

import json
from typing import Any

import numpy as np
import pytest

from snnbench.cases.rule import Rule, rule_of
from snnbench.proof.comparison import (
    ENTRIES_AT_ONCE,
    Finding,
    compare_gradient,
    compare_parts,
    compare_spikes,
    sums,
    verdict,
)
from snnbench.worker.messages import Reply
from tests.fakes import CASE

Array = np.ndarray[Any, Any]


def cube(*values: float) -> Array:
    """One neuron's values over time, [T, 1, 1]."""
    return np.array(values, float).reshape(-1, 1, 1)


def test_equal_spikes_are_counted_without_complaint() -> None:
    finding = Finding()
    differs = compare_spikes(finding, cube(0, 1, 1, 0), cube(0, 1, 1, 0), cube(0, 1, 2, 0), CASE)
    assert not differs.any() and finding.correct
    assert (finding.compared, finding.differing, finding.rate, finding.first_wrong) == (4, 0, 0.5, "")


def test_wrong_spike_is_named_with_index_and_potential() -> None:
    spikes = np.zeros((4, 3, 5))
    potential = np.full((4, 3, 5), 0.25)
    spikes[2, 1, 2], potential[2, 1, 2] = 1, 1.015625
    finding = Finding()
    compare_spikes(finding, np.zeros((4, 3, 5)), spikes, potential, CASE)
    assert finding.message == "1 of 60 spikes differ, the first at t=2, b=1, n=2: u=1.01562, expected 1, got 0"
    assert (finding.differing, finding.unexplained) == (1, 1)


def test_indices_are_of_the_whole_case() -> None:
    finding = Finding()
    compare_spikes(finding, cube(0), cube(1), cube(2), CASE, numbers=(np.array([11]), np.array([47])))
    assert "t=0, b=11, n=47" in finding.message


def test_difference_near_the_threshold_is_explained() -> None:
    finding = Finding()
    compare_spikes(finding, cube(0, 1), cube(1, 1), cube(1 + 1e-7, 2), CASE, margin=1e-6)
    assert finding.correct
    assert (finding.differing, finding.unexplained) == (1, 0)
    assert finding.first_wrong == "t=0, b=0, n=0: u=1, expected 1, got 0"


@pytest.mark.parametrize("value", [2.0, 0.5, -1.0, np.nan, np.inf, -np.inf])
def test_non_spike_value_is_never_explained(value: float) -> None:
    finding = Finding()
    compare_spikes(finding, cube(value, 1), cube(1, 1), cube(1 + 1e-7, 2), CASE, margin=1e-6)
    assert finding.message.startswith("1 of 2 spikes differ")
    assert json.loads(Reply({}, {"check": finding.as_dict()}).encode())["checks"]["check"]["rate"] == 1


def test_named_difference_is_an_unexplained_one() -> None:
    finding = Finding()
    compare_spikes(finding, cube(0, 1), cube(1, 1), cube(1, 2), CASE, margin=1e-6)
    compare_spikes(finding, cube(0, 0), cube(0, 1), cube(0, 2), CASE, margin=1e-6)
    assert finding.message == "1 of 2 spikes differ, the first at t=1, b=0, n=0: u=2, expected 1, got 0"


@pytest.mark.parametrize(("distance", "unexplained"), [(0.125, 0), (0.25, 0), (0.375, 1)])
@pytest.mark.parametrize("side", [-1, 1])
def test_difference_is_explained_up_to_its_margin(distance: float, unexplained: int, side: int) -> None:
    finding = Finding()
    fires = float(side > 0)
    compare_spikes(finding, cube(1 - fires), cube(fires), cube(1 + side * distance), CASE, margin=0.25)
    assert (finding.differing, finding.unexplained) == (1, unexplained)
    assert finding.correct is (not unexplained)


@pytest.mark.parametrize(
    ("got", "expected", "unexplained"),
    [(0.0, 1.0, 0), (2.0, 1.0, 0), (3.0, 1.0, 1), (2.0, 3.0, 0), (1.0, 3.0, 1), (0.0, 3.0, 1)],
)
def test_rounding_explains_one_spike_but_not_two(got: float, expected: float, unexplained: int) -> None:
    rule = Rule(**{name: getattr(rule_of(CASE), name) for name in Rule.__dataclass_fields__} | {"most_spikes": 3})
    finding = Finding()
    compare_spikes(finding, cube(got), cube(expected), cube(expected + 0.5), rule, margin=9.0)
    assert (finding.differing, finding.unexplained) == (1, unexplained)


def test_explained_differences_of_several_comparisons_add_up() -> None:
    finding = Finding()
    for _ in range(2):
        compare_spikes(finding, cube(0, 1, 0), cube(1, 1, 0), cube(1, 2, 0), CASE, margin=0.25)
    assert (finding.compared, finding.differing, finding.unexplained) == (6, 2, 0)
    for _ in range(2):
        compare_spikes(finding, cube(0, 1, 0), cube(1, 1, 0), cube(2, 2, 0), CASE, margin=0.25)
    assert (finding.compared, finding.differing, finding.unexplained) == (12, 4, 2)


@pytest.mark.parametrize(
    ("changes", "correct", "deviation", "word"),
    [
        ({}, True, None, "exact"),
        ({"dtype": "float64"}, True, None, "exact"),
        ({"dtype": "float64", "precision": "tf32"}, True, None, "exact"),
        ({"precision": "tf32"}, True, None, "equivalent"),
        ({"dtype": "float16"}, True, None, "equivalent"),
        ({"dtype": "bfloat16"}, True, None, "equivalent"),
        ({}, False, None, "incorrect"),
        ({"precision": "tf32"}, False, None, "incorrect"),
        ({}, True, "fires late", "deviates"),
        ({}, False, "fires late", "deviates"),
        ({"dtype": "bfloat16"}, True, "fires late", "deviates"),
    ],
)
def test_verdict_of_a_case(changes: dict[str, Any], correct: bool, deviation: str | None, word: str) -> None:
    assert verdict(CASE.with_(**changes), correct, deviation) == word


def test_spikes_of_another_shape_are_not_compared() -> None:
    finding = Finding()
    differs = compare_spikes(finding, np.zeros((5, 8, 37)), np.zeros((8, 5, 37)), np.zeros((8, 5, 37)), CASE)
    assert differs.shape == (8, 5, 37) and differs.all()
    assert finding.message == "spikes have the shape [5, 8, 37], expected [8, 5, 37]"


def gradient(got: Any, expected: Any, tolerance: float = 1e-5) -> Finding:
    """The finding of one comparison of two gradients."""
    finding = Finding()
    compare_gradient(finding, "weight", None if got is None else np.array(got), np.array(expected), tolerance)
    return finding


def test_gradient_error_is_relative_in_the_euclidean_norm() -> None:
    finding = gradient([3.0, 0.0], [3.0, 4.0])
    assert finding.gradient_errors == {"weight": pytest.approx(0.8)}
    assert finding.cosines == {"weight": pytest.approx(0.6)}
    assert finding.message == "gradient of weight is off by 0.8 (relative; 1e-05 allowed), cosine 0.600000"


@pytest.mark.parametrize(("off", "correct"), [(0.9e-5, True), (1.1e-5, False)])
def test_error_is_accepted_up_to_the_tolerance(off: float, correct: bool) -> None:
    assert gradient([1 + off, 0.0], [1.0, 0.0]).correct is correct


@pytest.mark.parametrize(
    ("got", "expected", "message"),
    [
        ([0.0, 0.0], [3.0, 4.0], "gradient of weight is zero"),
        (None, [3.0], "gradient of weight: got shape none, expected [1]"),
        ([[3.0]], [3.0], "gradient of weight: got shape [1, 1], expected [1]"),
        ([np.nan, 4.0], [3.0, 4.0], "gradient of weight is not finite"),
        ([np.inf, 4.0], [3.0, 4.0], "gradient of weight is not finite"),
        ([1e300, 4.0], [3.0, 4.0], "gradient of weight is not finite"),  # the norm overflows
        ([np.nan, 4.0], [0.0, 0.0], "gradient of weight is not finite"),
        ([np.inf, 4.0], [0.0, 0.0], "gradient of weight is not finite"),
        ([1.0, 0.0], [0.0, 0.0], "gradient of weight is off by 1 (relative; 1e-05 allowed), cosine 0.000000"),
        ([0.0, 0.0], [0.0, 0.0], ""),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_message_about_a_gradient(got: Any, expected: Any, message: str) -> None:
    finding = gradient(got, expected)
    assert finding.message == message
    Reply({}, {"check": finding.as_dict()}).encode()  # fails on infinity and NaN


def test_worst_gradient_of_a_name_is_recorded() -> None:
    finding = Finding()
    for off in (1e-7, 3e-6, 1e-8):
        compare_gradient(finding, "bias", np.array([1 + off]), np.array([1.0]), 1e-5)
    assert finding.correct and finding.gradient_errors["bias"] == pytest.approx(3e-6)


def test_part_of_a_gradient_that_is_off_is_named() -> None:
    expected = np.array([[3.0, 4.0], [3.0, 4.0], [3.0, 4.0]])
    honest, wrong = Finding(), Finding()
    compare_parts(honest, "weight", expected.copy(), expected, 1e-3, (0, 1))
    assert honest.complaints == []
    off = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.5]])
    compare_parts(wrong, "weight", expected + off, expected, 1e-3, (0, 1))
    assert wrong.complaints == ["gradient of weight is off by 0.1 at 2 of axis 0 (0.001 allowed)"]


def held_to(finding: Finding, error: float, tolerance: float, magnified: float) -> Finding:
    """The finding, after a gradient with this error that rounding may move by `magnified`."""
    compare_gradient(finding, "weight", np.array([1 + error]), np.array([1.0]), tolerance, magnified=lambda: magnified)
    return finding


def test_only_an_error_beyond_the_tolerance_is_held_to_the_recurrence() -> None:
    """An infinite tolerance makes an answer unprovable where it is asked for."""
    assert held_to(Finding(), 0.25, 0.25, np.inf).unprovable == ""
    assert held_to(Finding(), 0.25, 0.125, np.inf).unprovable


def test_widest_tolerance_of_a_name_is_recorded() -> None:
    finding = held_to(held_to(Finding(), 0.25, 0.125, 0.375), 0.25, 0.125, 0.3125)
    assert finding.correct and finding.tolerances == {"weight": 0.375}


@pytest.mark.parametrize("count", [1, ENTRIES_AT_ONCE, ENTRIES_AT_ONCE + 1, 3 * ENTRIES_AT_ONCE - 1])
def test_sums_in_blocks_are_those_of_whole_arrays(count: int) -> None:
    got, expected = np.random.default_rng(0).standard_normal((2, count)).astype(np.float32)
    whole = [np.linalg.norm(each.astype(np.float64)) for each in (expected, got, got.astype(np.float64) - expected)]
    assert sums(got, expected) == pytest.approx([*whole, np.vdot(got.astype(np.float64), expected)], rel=1e-12)
