"""Tests of rounding to number formats, and of the margins and tolerances that follow from it."""

from typing import Any

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.cases.rule import Rule, rule_of
from snnbench.proof.spotcheck import SpotCheck
from snnbench.proof.tolerance import EXAM_GRADIENT_ROUNDOFFS, gradient_tolerance, of_potentials, of_sums, round_to
from snnbench.workloads.linear_lif import Problem
from tests.fakes import CASE, profile

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("dtype", "precision", "roundoff"),
    [
        ("float32", "ieee", 84 * 2.0**-24),
        ("float64", "ieee", 84 * 2.0**-53),
        ("float32", "tf32", 16 * 2.0**-11),
        ("float16", "ieee", 16 * 2.0**-11),
        ("bfloat16", "tf32", 16 * 2.0**-8),
    ],
)
def test_tolerances_come_from_the_number_format(dtype: Any, precision: Any, roundoff: float) -> None:
    assert gradient_tolerance(CASE.with_(dtype=dtype, precision=precision)) == roundoff


def test_exam_tolerance_is_1e_5() -> None:
    assert gradient_tolerance(CASE, EXAM_GRADIENT_ROUNDOFFS) == pytest.approx(1e-5, rel=0.01)


@pytest.mark.parametrize(
    ("number_format", "bits"), [("tf32", 10), ("bfloat16", 7), ("float16", 10), ("float32", 23), ("float64", 23)]
)
def test_rounding_is_to_the_nearest_and_ties_to_even(number_format: str, bits: int) -> None:
    step = 2.0**-bits
    values = {1.0: 1.0, 1 + step: 1 + step, -1 - step: -1 - step, 0.0: 0.0, 3.0: 3.0}
    if bits < 23:
        values |= {1 + step / 2: 1.0, 1 + 3 * step / 2: 1 + 2 * step, 1 + 0.51 * step: 1 + step, -1 - step / 2: -1.0}
        values |= {2 - step / 4: 2.0}  # a carry into the exponent
    given = np.array(list(values), np.float32)
    assert round_to(given, number_format).tolist() == list(values.values())
    assert round_to(given, number_format).dtype == np.float64


def test_rounding_is_idempotent_and_takes_any_layout() -> None:
    array = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    for number_format in ("tf32", "bfloat16", "float16"):
        once = round_to(array.T, number_format)
        assert np.array_equal(once, round_to(array, number_format).T)
        assert np.array_equal(once, round_to(once.astype(np.float32), number_format))
        assert 0 < np.abs(once - array.T).max() < 0.02


@pytest.mark.parametrize(("synapse", "gain"), [(0.0, 1.0), (0.75, 1.0), (0.75, 1.3), (0.0, 1.3)])
@pytest.mark.parametrize("name", ["subtract", "zero"])
def test_margin_covers_the_rounding_of_the_state_tightly(name: str, synapse: float, gain: float) -> None:
    """The same currents and spikes, with the state once in float32 and once in float64; constants are in float32."""
    case = CASE.with_(**profile(name), time_steps=400, beta=float(np.float32(0.91)))
    numbers = {field: getattr(rule_of(case), field) for field in Rule.__dataclass_fields__}
    rule = Rule(**(numbers | {"synapse": synapse, "gain": float(np.float32(gain))}))
    generator = np.random.default_rng(1)
    current = generator.normal(0.1, 0.5, (400, 4, 50)).astype(np.float32)
    wide = reference.forward(current.astype(np.float64), rule)
    v = i = np.zeros_like(current[0])
    beta, factor = np.float32(rule.beta), np.float32(rule.gain)
    plain = (synapse, gain) == (0.0, 1.0)  # then only the state is rounded; else the input is, too
    summing = np.zeros_like(wide.potential) if plain else of_sums(np.abs(current), rule, case)
    margin = of_potentials(wide, rule, "float32", current, summing)
    errors = []
    for t, x in enumerate(current):
        i = np.float32(synapse) * i + factor * x
        u = beta * v + i
        s = wide.spikes[t].astype(np.float32)
        v = u - np.float32(rule.threshold) * s if name == "subtract" else u * (1 - s)
        errors.append(np.abs(u - wide.potential[t]))
    assert (np.array(errors) <= margin).all()
    assert np.array(errors).max() > margin.max() / 50, "a margin that explains everything explains nothing"


def rounded_answer(problem: Problem, number_format: str) -> Answer:
    """Honest 16-bit arithmetic: weights, current and every state rounded."""

    def rounded(array: Array) -> Array:
        return round_to(array.astype(np.float32), number_format)

    case, (weight, bias) = problem.case, problem.layers()[0]
    current = rounded(problem.input(0) @ rounded(weight).T + rounded(bias))
    beta, v, spikes = rounded(np.array([case.beta])), np.zeros_like(current[0]), []
    for x in current:
        u = rounded(rounded(beta * v) + x)
        spikes.append((u >= case.threshold).astype(np.float64))
        v = rounded(u - case.threshold * spikes[-1])
    return Answer(np.array(spikes))


@pytest.mark.parametrize("number_format", ["float16", "bfloat16"])
def test_16_bit_arithmetic_passes_as_16_bits_but_not_as_float32(number_format: Any) -> None:
    case = CASE.with_(dtype=number_format, time_steps=200, batch=16, neurons=128)
    answer = rounded_answer(Problem(case), number_format)
    finding = SpotCheck(Problem(case), 0).check(answer)
    assert finding.correct, finding.message
    assert finding.differing > 0
    claimed = Problem(case.with_(dtype="float32"))
    assert "spikes differ" in SpotCheck(claimed, 0).check(answer).message


@pytest.mark.parametrize(("dtype", "roundoff"), [("float32", 2.0**-24), ("float64", 2.0**-53)])
def test_tolerance_grows_with_the_root_of_the_summed_terms(dtype: Any, roundoff: float) -> None:
    case = CASE.with_(dtype=dtype)
    assert gradient_tolerance(case) == gradient_tolerance(case, summed=84**2) == 84 * roundoff
    assert gradient_tolerance(case, summed=65536) == 256 * roundoff
    assert gradient_tolerance(CASE.with_(dtype="bfloat16"), summed=65536) == 16 * 2.0**-8


def test_sum_in_one_accumulator_uses_a_third_of_the_tolerance() -> None:
    terms = np.random.Generator(np.random.Philox(1)).standard_normal((65536, 64), dtype=np.float32)
    total = np.zeros(64, np.float32)
    for row in terms:
        total += row
    exact = terms.sum(0, dtype=np.float64)
    error = np.linalg.norm(total - exact) / np.linalg.norm(exact)
    assert 0.2 < error / gradient_tolerance(CASE, summed=65536) < 0.5


@pytest.mark.parametrize(
    ("changes", "roundoff", "cuts"),
    [
        ({}, 2.0**-24, 0),
        ({"dtype": "float64"}, 2.0**-53, 0),
        ({"dtype": "bfloat16"}, 2.0**-24, 0),
        ({"device": "cuda", "precision": "tf32"}, 2.0**-24, 12),
    ],
)
def test_rounding_error_of_a_sum(changes: dict[str, Any], roundoff: float, cuts: int) -> None:
    case = CASE.with_(threshold=2.0, **changes)
    assert of_sums(np.array([3.0]), rule_of(case), case) == roundoff * (32 * (2.0 + 3.0) + cuts * 2.0)
