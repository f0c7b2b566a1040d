"""Tests of rounding margins, computed by hand in roundoffs of the format, and of values on either side of them."""

import math
from typing import Any

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.rule import Rule, rule_of
from snnbench.proof import tolerance
from snnbench.proof.tolerance import (
    allowed_by_chance,
    expected_differences,
    fewest_tolerance,
    of_chance,
    of_potentials,
    of_sums,
    round_to,
)
from tests.fakes import CASE

R = 2.0**-24
"""Half of the distance from 1 to the next number in float32."""
SLOW: dict[str, Any] = {
    **{"beta": 0.5, "threshold": 1.0, "detach_reset": False, "surrogate": "fast_sigmoid", "slope": 1.0},
    **{"synapse": 0.5, "gain": 2.0},
}


def column(*values: float) -> np.ndarray:
    """One neuron's values over time, [T, 1, 1]."""
    return np.array(values).reshape(-1, 1, 1)


@pytest.mark.parametrize(("reset", "last"), [("zero", 21.21875), ("subtract", 23.78125)])
@pytest.mark.parametrize(("dtype", "roundoff"), [("float32", 2.0**-24), ("float64", 2.0**-53), ("bfloat16", 2.0**-8)])
def test_margin_with_synapse_and_gain(reset: Any, last: float, dtype: str, roundoff: float) -> None:
    """i = .5 .5 .75 .375 and u = .5 .75 1.125; u fires, and is .375 after a reset to zero, .4375 after the other.

    In roundoffs, with sums that are off by 8 4 16 0: the synapse adds .5 * .5 + 16 = 16.25,
    .5 * (16.25 + .5) + 8 = 16.375, .5 * (16.375 + .75) + 32 = 40.5625 and .5 * (40.5625 + .375) = 20.46875. The state
    is off by .5 + .5 = 1, then .5 * 1.5 + (.25 + .5 + .75) = 2.25, then .5 * 3 + (.375 + .75 + 1.125) = 3.75. Then it
    is off by .375 + .375 = .75 after a reset to zero, and by .5 * 4.875 + (.0625 + .375 + .4375) = 3.3125 after the
    other.
    """
    rule = Rule(reset=reset, **SLOW)
    current = column(0.25, 0.125, 0.25, 0.0)
    trace = reference.forward(current, rule)
    assert trace.potential.ravel().tolist()[:3] == [0.5, 0.75, 1.125]
    margin = of_potentials(trace, rule, dtype, current, roundoff * column(8, 4, 16, 0))
    assert margin.ravel().tolist() == [roundoff * each for each in (17.25, 18.625, 44.3125, last)]


@pytest.mark.parametrize(("terms", "roundoffs"), [(0.0, 32 * 2), (3.0, 32 * (2 + 3))])
def test_sum_may_be_off_by_32_roundoffs(terms: float, roundoffs: float) -> None:
    case = CASE.with_(threshold=2.0)
    assert of_sums(np.array([terms]), rule_of(case), case).tolist() == [R * roundoffs]


@pytest.mark.parametrize(
    ("dtype", "roundoff"),
    [("float64", 2.0**-53), ("float32", 2.0**-24), ("float16", 2.0**-24), ("bfloat16", 2.0**-24)],
)
def test_sums_are_in_float64_only_for_float64(dtype: Any, roundoff: float) -> None:
    case = CASE.with_(dtype=dtype)
    assert of_sums(np.array([1.0]), rule_of(case), case).tolist() == [64 * roundoff]


def test_tensor_cores_add_truncation_to_a_sum() -> None:
    """Every 8 terms add 2 roundoffs of a partial sum as large as the threshold: 48 terms add 12 to the 32."""
    case = CASE.with_(device="cuda", precision="tf32", threshold=2.0)
    assert of_sums(np.array([0.0]), rule_of(case), case).tolist() == [R * (32 * 2 + 12 * 2)]


def test_margin_of_negative_potentials_is_that_of_positive_ones() -> None:
    rule = rule_of(CASE.with_(beta=0.9, threshold=9.0))
    current = np.random.default_rng(1).uniform(0.0, 0.8, (6, 1, 1))
    above, below = (
        of_potentials(reference.forward(sign * current, rule), rule, "bfloat16", sign * current, 0 * current)
        for sign in (1, -1)
    )
    assert np.array_equal(above, below)


def test_margin_of_the_cases_own_neuron() -> None:
    """beta = 1/2, currents 3/4 and 1/2: u = .75 and .875. Off by .75 + .75, then .5 * (1.5 + .75) + (.375 + .5 + .875).

    The errors of its sums, 4 and 0, are not carried over.
    """
    case = CASE.with_(beta=0.5)
    current = column(0.75, 0.5)
    trace = reference.forward(current, case)
    margin = of_potentials(trace, rule_of(case), "float32", current, R * column(4, 0))
    assert margin.ravel().tolist() == [R * (1.5 + 4), R * (1.125 + 1.75)]


def fixed_point(gain: float) -> Rule:
    """A rule in quarters, with a threshold far above all values."""
    changes = {"synapse": 0.0, "gain": gain, "unit": 0.25, "threshold": 10.0, "reset": "subtract"}
    return Rule(**(SLOW | changes))


def test_fixed_point_margin_is_a_whole_number_of_units() -> None:
    """Currents of .5 .375 .5 double to 1, .75 and 1. A sum that is off by .3 doubles to .6: three units.

    Half of three units is one and a half, and truncation makes at most two units of that; the other sums are exact.
    """
    rule, current = fixed_point(2.0), column(0.5, 0.375, 0.5)
    margin = of_potentials(reference.forward(current, rule), rule, "float32", current, column(0.3, 0.0, 0.0))
    assert margin.ravel().tolist() == [0.75, 0.5, 0.5]


@pytest.mark.parametrize(
    ("current", "reach", "margin"),
    [
        *[(0.9, 0.0999, 0.0), (0.9, 0.1001, 0.25), (0.9, 0.2499, 0.25), (0.9, 0.2501, 0.5)],
        *[(0.875, 0.125, 0.25), (0.8, 0.06, 0.25), (0.8, 0.04, 0.0)],
    ],
)
def test_fixed_point_current_is_off_only_next_to_a_multiple(current: float, reach: float, margin: float) -> None:
    """0.9 is 0.1 below 1, 0.875 is half a unit from two multiples, 0.8 is 0.05 above 0.75."""
    rule, entering = fixed_point(1.0), column(current)
    reached = of_potentials(reference.forward(entering, rule), rule, "float32", entering, column(reach))
    assert reached.ravel().tolist() == [margin]


@pytest.mark.parametrize(
    ("current", "reach", "margins"),
    [
        (0.5, 0.01, [0.25, 0.25]),  # far below the reset: one unit; half is carried and rounds to one
        (0.75, 0.01, [0.25, 0.75]),  # a unit below: 1 or 0, and half of that, truncated
        (1.25, 0.01, [0.25, 0.0]),  # a unit above, but a spike shows the reset
        (1.0, 0.0, [0.0, 0.0]),  # on it, and nothing is rounded
    ],
)
def test_silent_reset_is_doubtful_only_within_the_margin(current: float, reach: float, margins: list[float]) -> None:
    rule = Rule(
        **(SLOW | {"synapse": 0.0, "gain": 1.0, "unit": 0.25, "threshold": 1.0025, "resets_at": 1.0}), reset="zero"
    )
    entering = column(current, 0.0)
    reached = of_potentials(reference.forward(entering, rule), rule, "float32", entering, column(reach, 0.0))
    assert reached.ravel().tolist() == margins


def test_expected_differences_of_two_steps_by_hand() -> None:
    """beta = 1/2, currents 3/4 and 1/2: u = .75 and .875, 64 and 32 roundoffs of bfloat16 below the threshold.

    In thirds of a squared roundoff the variances are .75^2 + .75^2 = 1.125, then .25 * (1.125 + .75^2) + .375^2 + .5^2
    + .875^2 = 1.578125. One roundoff below the threshold the second one is 1.94046.
    """
    rule = rule_of(CASE.with_(beta=0.5))
    trace = reference.forward(column(0.75, 0.5), rule)
    chances = [
        math.erfc(roundoffs / math.sqrt(2 * variance / 3)) / 2 for roundoffs, variance in ((64, 1.125), (32, 1.578125))
    ]
    assert expected_differences(trace, rule, "bfloat16") == pytest.approx(sum(chances), abs=1e-30)
    near = reference.forward(column(0.75, 0.625 - 2**-8), rule)
    assert expected_differences(near, rule, "bfloat16") == pytest.approx(
        math.erfc(1 / math.sqrt(2 * 1.94046 / 3)) / 2, 0.01
    )


def test_number_that_the_format_cannot_hold_moves_more_spikes(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.9 is 0.8984 in bfloat16, and a threshold of 1.01 is 1.0078; 0.875 and 1 are themselves."""
    currents = np.random.default_rng(3).normal(0.2, 0.5, (40, 8, 50))
    expected: dict[tuple[float, float], list[float]] = {}
    for error in (tolerance.representation_error, lambda number, dtype: 0.0):
        monkeypatch.setattr(tolerance, "representation_error", error)
        for beta, threshold in ((0.875, 1.0), (0.9, 1.0), (0.875, 1.01)):
            rule = rule_of(CASE.with_(beta=beta, threshold=threshold))
            count = expected_differences(reference.forward(currents, rule), rule, "bfloat16")
            expected.setdefault((beta, threshold), []).append(count)
    ratios = {numbers: off / exact for numbers, (off, exact) in expected.items()}
    assert ratios[0.875, 1.0] == 1.0 and ratios[0.9, 1.0] > 1.1 and ratios[0.875, 1.01] > 1.01


def test_decay_that_the_format_cannot_hold_shifts_a_potential_by_hand() -> None:
    """0.3 is 0.30078125 in bfloat16. The first potential of 0.96 is far from the threshold, the second 2.5 roundoffs.

    A decay by more than half is rounded as 1 + 2 * 0.4 / 0.3 = 3.667 roundings. In thirds of a squared roundoff the
    variances are 2 * 0.96^2, then 0.09 * 3 * 0.96^2 + (3.667 * 0.288)^2 + (u - 0.288)^2 + u^2.
    """
    rule, roundoff, u = rule_of(CASE.with_(beta=0.3)), 2.0**-8, 1 - 2.5 * 2.0**-8
    trace = reference.forward(column(0.96, u - 0.288), rule)
    variance = roundoff**2 / 3 * (0.27 * 0.96**2 + (11 / 3 * 0.288) ** 2 + (u - 0.288) ** 2 + u**2)
    deviation = math.sqrt(variance + (0.00078125 * 0.96) ** 2)
    chance = math.erfc(2.5 * roundoff / math.sqrt(2) / deviation) / 2
    assert expected_differences(trace, rule, "bfloat16") == pytest.approx(chance, 1e-3)


def test_slow_decay_is_rounded_in_one_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    currents = np.random.default_rng(3).normal(0.0, 0.5, (40, 8, 50))
    expected: dict[float, list[float]] = {}
    for steady in (tolerance.STEADY, 0.0):
        monkeypatch.setattr(tolerance, "STEADY", steady)
        for beta in (0.875, 1 - 2.0**-9, 1.0):
            rule = rule_of(CASE.with_(beta=beta))
            count = expected_differences(reference.forward(currents, rule), rule, "bfloat16")
            expected.setdefault(beta, []).append(count)
    assert {beta: steadily > 1.1 * evenly for beta, (steadily, evenly) in expected.items()} == {
        **{0.875: False, 1 - 2.0**-9: True, 1.0: False}
    }


@pytest.mark.parametrize(
    ("dtype", "below", "moves"),
    [("float32", 0.0, False), ("float32", R, True), ("float64", 0.0, False), ("bfloat16", 0.0, True)],
)
def test_potential_on_the_threshold_moves_in_16_bits_only(dtype: str, below: float, moves: bool) -> None:
    rule = rule_of(CASE)
    assert (expected_differences(reference.forward(column(1 - below), rule), rule, dtype) > 0.01) is moves


def test_sums_of_tensor_cores_move_a_current_by_their_truncation() -> None:
    """48 terms move a current by 0.3 * sqrt(48) = 2.078 roundoffs, and truncation by 12 more."""
    case = CASE.with_(device="cuda", precision="tf32")
    assert of_chance(np.array([1.0]), case) == pytest.approx(2 * R * 14.078, 1e-4)
    assert of_chance(np.array([1.0]), CASE) == pytest.approx(2 * R * 2.078, 1e-3)


@pytest.mark.parametrize(("steps", "roundoffs"), [(0, 2.0), (100, 11.0), (10_000, 16.0)])
def test_gradient_in_16_bits_may_be_off_by_its_sum_over_time(steps: int, roundoffs: float) -> None:
    assert fewest_tolerance(CASE.with_(dtype="bfloat16"), steps) == pytest.approx(roundoffs * 2.0**-8)


@pytest.mark.parametrize(("expected", "allowed"), [(0.0, 1), (0.125, 3), (2.0, 13), (50.0, 141)])
def test_allowed_differences_in_16_bits(expected: float, allowed: int) -> None:
    assert allowed_by_chance(expected) == allowed


@pytest.mark.parametrize("beta", [0.5, 0.875])
@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_roundings_of_bfloat16_move_as_many_spikes_as_expected(beta: float, reset: Any) -> None:
    """A state that is rounded after each operation, against the reference with its resets."""
    rule = rule_of(CASE.with_(beta=beta, reset=reset, detach_reset=True))
    currents = round_to(np.random.default_rng(5).normal(0.3, 0.5, (30, 40, 100)).astype(np.float32), "bfloat16")
    v, spikes = np.zeros(currents.shape[1:]), []
    for x in currents:
        u = rounded(rounded(rule.beta * v) + x)
        spikes.append(rule.fired(u))
        v = rounded(rule.after_reset(u, spikes[-1]))
    got = np.stack(spikes)
    trace = reference.forward(currents, rule, forced=got)
    differing = int((got != rule.fired(trace.potential)).sum())
    expected = expected_differences(trace, rule, "bfloat16")
    assert expected > 20 and 0.25 * expected < differing < allowed_by_chance(expected)


def rounded(values: np.ndarray) -> np.ndarray:
    return round_to(values.astype(np.float32), "bfloat16")
