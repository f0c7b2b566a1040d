"""Tests of verification: the findings of comparisons, of the exam, and of the spot check at full size."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from snnbench.proof import exam
from snnbench.proof.comparison import Finding, compare_gradient, compare_spikes, verdict
from snnbench.proof.spotcheck import SpotCheck
from snnbench.proof.tolerance import (
    EXAM_GRADIENT_ROUNDOFFS,
    allowed_differences,
    gradient_tolerance,
    of_potentials,
    of_sums,
    round_to,
)
from snnbench.worker.messages import Reply
from snnbench.workloads import reference
from snnbench.workloads.answer import Answer
from snnbench.workloads.case import PROFILES, Case
from snnbench.workloads.problem import REVERSED, Layer, Problem
from snnbench.workloads.problem import exam as exam_problem
from snnbench.workloads.rule import Rule, rule_of
from tests.fakes import CASE, profile

Array = np.ndarray[Any, Any]


def cube(*values: float) -> Array:
    """One neuron's values over time, [T, 1, 1]."""
    return np.array(values, float).reshape(-1, 1, 1)


def answer_to(problem: Problem, which: int, cotangent: int, dtype: str = "float64", case: Case | None = None) -> Answer:
    """The reference's answer in some format; with `case`, its answer for another case."""
    case = case or problem.case
    layers = [(w.astype(dtype), b.astype(dtype)) for w, b in problem.layers()]
    inputs, given = problem.input(which).astype(dtype), problem.cotangent(cotangent).astype(dtype)
    traces = reference.network_forward(layers, inputs, case)
    got = reference.network_backward(layers, inputs, traces, given, case)
    return Answer(traces[-1].spikes, got.weights, got.biases, got.input)


# Comparisons


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


# The exam


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reference_passes_the_exam_in_three_passes(name: str, layers: int, dtype: Any) -> None:
    problem, passes = exam_problem(CASE.with_(**profile(name), dtype=dtype), layers), []

    def run(which: int, cotangent: int) -> Answer:
        passes.append((which, cotangent))
        return answer_to(problem, which, cotangent, dtype)

    finding = exam.sit(problem, run)
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

    finding = exam.sit(problem, run)
    assert finding.message.startswith("gradient of input is off by 2 ")
    assert len(passes) == first_wrong_pass + 1


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"spikes": None}, "no spikes"),
        ({"weights": None}, "gradient of weight: got shape none"),
        ({"biases": None}, "gradient of bias: got shape none"),
        ({"input": None}, "gradient of input: got shape none"),
    ],
)
def test_exam_requires_spikes_and_all_gradients(change: dict[str, None], complaint: str) -> None:
    problem = exam_problem(CASE, 1)
    finding = exam.sit(problem, lambda *which: replace(answer_to(problem, *which), **change))
    assert finding.message.startswith(complaint)


@pytest.mark.parametrize("given", PROFILES)
@pytest.mark.parametrize("examined", PROFILES)
def test_profile_passes_only_its_own_exam(given: str, examined: str) -> None:
    problem = exam_problem(CASE.with_(**profile(examined)), 1)
    other = problem.case.with_(**profile(given))
    finding = exam.sit(problem, lambda *which: answer_to(problem, *which, case=other))
    assert finding.correct is (given == examined)


def test_gradient_that_ignores_time_fails_the_third_pass() -> None:
    """This fake memorised the answers to both cotangents."""
    problem = exam_problem(CASE, 1)
    known = {which: answer_to(problem, which, which) for which in (0, 1)}
    finding = exam.sit(problem, lambda which, cotangent: known[which])
    assert finding.message.startswith("gradient of weight is off by")


# The spot check


@dataclass(frozen=True)
class Given:
    """A problem with given weights and input, and a dense cotangent."""

    case: Case
    weights: list[Layer]
    entering: Array

    def layers(self) -> list[Layer]:
        return self.weights

    def input(self, which: int) -> Array:
        return self.entering

    def cotangent(self, which: int) -> Array:
        return np.random.default_rng(which).normal(size=self.entering.shape).astype(np.float32)


def constant(bias: list[float], steps: int = 3, batch: int = 2, **changes: Any) -> Given:
    """Neurons with only their bias as input."""
    neurons = len(bias)
    case = CASE.with_(neurons=neurons, batch=batch, time_steps=steps, **changes)
    layer = (np.zeros((neurons, neurons), np.float32), np.array(bias, np.float32))
    return Given(case, [layer] * case.layers, np.zeros((steps, batch, neurons), np.float32))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(("layers", "neurons"), [(1, 20), (1, 33), (1, 80), (3, 20)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_correct_answer_passes(name: str, layers: int, neurons: int, dtype: Any) -> None:
    problem = Problem(CASE.with_(**profile(name), layers=layers, neurons=neurons, dtype=dtype))
    finding = SpotCheck(problem, 1).check(answer_to(problem, 1, 1, dtype))
    assert finding.correct, finding.message
    assert finding.compared > 0 and finding.differing == 0
    assert len(finding.gradient_errors) == 2 * layers + 1


def test_spikes_alone_are_checked_too() -> None:
    problem = Problem(CASE)
    finding = SpotCheck(problem, 1).check(Answer(answer_to(problem, 1, 1).spikes))
    assert finding.correct and finding.gradient_errors == {}


@pytest.mark.parametrize("layers", [1, 2])
def test_answer_to_another_input_fails(layers: int) -> None:
    problem = Problem(CASE.with_(layers=layers))
    assert "spikes differ" in SpotCheck(problem, 1).check(answer_to(problem, 0, 1)).message
    assert "gradient of" in SpotCheck(problem, 1).check(answer_to(problem, 1, 0)).message


@pytest.mark.parametrize("neurons", [48, 400])
@pytest.mark.parametrize("index", [(0, 0, 0), (19, 6, -1), (7, 3, 0)])
def test_one_wrong_spike_of_a_compared_neuron_is_found(neurons: int, index: tuple[int, int, int]) -> None:
    problem = Problem(CASE.with_(neurons=neurons))
    right = answer_to(problem, 1, 1).spikes
    assert right is not None
    wrong = right.copy()
    wrong[index] = 1 - wrong[index]
    finding = SpotCheck(problem, 1).check(Answer(wrong))
    t, b, n = index
    assert f"the first at t={t}, b={b}, n={n % neurons}: " in finding.message
    assert SpotCheck(problem, 1).check(Answer(right)).correct


def test_one_wrong_spike_does_not_affect_later_ones() -> None:
    problem = constant([0.6, 0.7])
    spikes = answer_to(problem, 0, 0).spikes  # type: ignore[arg-type]
    assert spikes is not None and spikes[:, 0, 0].tolist() == [0, 1, 0]
    spikes[0, 0, 0] = 1  # then v = -0.4 and u = 0.236: no spike is due at t=1
    spikes[1, 0, 0] = 0
    finding = SpotCheck(problem, 0).check(Answer(spikes))  # type: ignore[arg-type]
    assert finding.message.startswith("1 of 12 spikes differ, the first at t=0, b=0, n=0: u=0.6")


def test_spike_on_the_threshold_may_go_either_way() -> None:
    """Rounding decides it, and later steps are judged by the answer's own spikes."""
    problem = constant([1.0, 0.6], batch=1)
    check = SpotCheck(problem, 0)  # type: ignore[arg-type]
    right = answer_to(problem, 0, 0).spikes  # type: ignore[arg-type]
    assert right is not None and right[0, 0, 0] == 1
    late = right.copy()
    late[0, 0, 0] = 0  # v = 1, and u = 1.91 then: it fires at t=1 and t=2
    finding = check.check(Answer(late))
    assert finding.correct, finding.message
    assert finding.differing and not finding.unexplained
    assert finding.first_wrong == "t=0, b=0, n=0: u=1, expected 1, got 0"


def test_explained_differences_must_be_rare_in_full_precision() -> None:
    problem = constant([1.0, 0.6], batch=2)
    spikes = answer_to(problem, 0, 0).spikes  # type: ignore[arg-type]
    assert spikes is not None
    spikes[0, :, 0] = 0
    message = SpotCheck(problem, 0).check(Answer(spikes)).message  # type: ignore[arg-type]
    assert message == "2 of 12 spikes differ, 1 allowed; the first at t=0, b=0, n=0: u=1, expected 1, got 0"


def test_allowed_differences_are_a_rate_with_room_for_chance() -> None:
    # count * 1e-6, plus four times its square root, plus one, rounded down
    assert [allowed_differences(count) for count in (12, 10**6, 4 * 10**6, 10**8)] == [1, 6, 13, 141]


@pytest.mark.parametrize(("roundoffs", "correct"), [(-67, False), (-65, True), (65, True), (67, False)])
@pytest.mark.parametrize(
    ("dtype", "precision"), [("float32", "ieee"), ("float32", "tf32"), ("float64", "ieee")], ids=str
)
def test_margin_at_the_threshold_is_66_roundoffs(roundoffs: float, correct: bool, dtype: Any, precision: Any) -> None:
    """A current of 1 next to the threshold: 32 roundoffs of either, then one of the current and of the potential: 66.

    If tensor cores truncate, two terms may lose half a roundoff more: 66.5.
    """
    unit = 2.0 ** (-53 if dtype == "float64" else -24)
    changes = {"dtype": dtype, "precision": precision, "threshold": 1.0 - roundoffs * unit}
    problem = constant([1.0, 0.6], steps=1, batch=1, **changes)
    fired = float(roundoffs >= 0)
    spikes = answer_to(problem, 0, 0, "float64").spikes  # type: ignore[arg-type]
    assert spikes is not None and spikes[0, 0, 0] == fired
    spikes[0, 0, 0] = 1 - fired
    finding = SpotCheck(problem, 0, guarded=False).check(Answer(spikes))  # type: ignore[arg-type]
    assert finding.correct is correct, finding.message
    assert finding.differing - finding.unexplained == correct


@pytest.mark.parametrize(("bias", "rate"), [([-1.0, -1.0], "0"), ([9.0, 9.0], "1")])
@pytest.mark.parametrize("layers", [1, 2])
def test_silent_or_saturated_network_is_reported(bias: list[float], rate: str, layers: int) -> None:
    problem = constant(bias, layers=layers)
    finding = SpotCheck(problem, 0).check(answer_to(problem, 0, 0))  # type: ignore[arg-type]
    assert finding.message == f"{rate} spikes per step, outside the window 0.01 to 0.9"


def test_answer_of_another_shape_is_reported() -> None:
    problem = Problem(CASE)
    finding = SpotCheck(problem, 0).check(Answer(np.zeros((7, 20, 48))))
    assert finding.message == "spikes have the shape [7, 20, 48], expected [20, 7, 48]"
    assert SpotCheck(problem, 0).check(Answer(None)).message == "no spikes"


def test_input_gradient_is_required_only_if_the_case_has_one() -> None:
    for wanted in (True, False):
        problem = Problem(CASE.with_(input_gradient=wanted))
        finding = SpotCheck(problem, 0).check(replace(answer_to(problem, 0, 0), input=None))
        assert finding.correct is not wanted


@pytest.mark.parametrize("part", ["weights", "biases"])
@pytest.mark.parametrize("layers", [1, 2])
def test_one_wrong_row_of_a_gradient_is_found(part: str, layers: int) -> None:
    problem = Problem(CASE.with_(layers=layers))
    right = answer_to(problem, 1, 1)
    arrays = [array.copy() for array in getattr(right, part)]
    arrays[-1][-1] *= 1.001
    assert "is off by" in SpotCheck(problem, 1).check(replace(right, **{part: arrays})).message


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


# Rounding


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


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("slope", [1.0, 10.0, 40.0])
def test_narrow_surrogate_does_not_widen_the_cases_tolerance(dtype: Any, slope: float) -> None:
    problem = Problem(CASE.with_(dtype=dtype, slope=slope))
    assert SpotCheck(problem, 0).tolerance(1) == gradient_tolerance(problem.case)
    own = SpotCheck(problem, 0, rule_of(problem.case)).tolerance(1)
    assert own == gradient_tolerance(problem.case) * (slope if dtype == "float32" else 1)


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


@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_second_pass_continues_restarts_or_does_neither(reset: Any) -> None:
    problem = exam_problem(CASE.with_(reset=reset, detach_reset=reset == "zero"), 1)
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    both = np.concatenate([problem.input(0), problem.input(1)]).astype(np.float64)
    in_a_row = reference.network_forward(layers, both, problem.case)[-1].spikes[len(problem.input(0)) :]
    alone = reference.network_forward(layers, problem.input(1).astype(np.float64), problem.case)[-1].spikes
    assert exam.continuation(problem, in_a_row) == "continues"
    assert exam.continuation(problem, alone) == "restarts"
    mixed = np.concatenate([in_a_row[:, :2], alone[:, 2:]], 1)
    assert exam.continuation(problem, mixed) == exam.continuation(problem, None) == "neither"
