"""Tests of the spot check: its rounding, its tolerance for each gradient, its firing rates, and what it compares."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.problem import Layer
from snnbench.cases.rule import Rule, rule_of
from snnbench.proof.comparison import Finding
from snnbench.proof.spotcheck import SpotCheck, sampled
from snnbench.proof.tolerance import round_to
from snnbench.workloads import lif
from snnbench.workloads.linear_lif import Problem
from tests.fakes import CASE, LIF
from tests.programs import Program

Array = np.ndarray[Any, Any]
ALL_NS = 10**12
"""A budget large enough to compare everything."""


def rounded_answer(problem: Problem, which: int, cotangent: int, products: str, dtype: str) -> Answer:
    """The reference's answer, with operands of products rounded to one format and everything else to another."""
    case = problem.case
    layers = [(round_to(weight, products), round_to(bias, dtype)) for weight, bias in problem.layers()]
    inputs = round_to(problem.input(which), products)
    traces = reference.network_forward(layers, inputs, case)
    given = round_to(problem.cotangent(cotangent), dtype)
    got = reference.network_backward(layers, inputs, traces, given, case)
    return Answer(traces[-1].spikes, got.weights, got.biases, got.input)


@pytest.mark.parametrize("budget_ns", [0, ALL_NS], ids=["a part", "everything"])
@pytest.mark.parametrize("input_kind", ["spikes", "gaussian"])
@pytest.mark.parametrize(
    ("dtype", "precision", "products", "layers"),
    [
        ("float64", "ieee", "float64", 1),
        ("float32", "ieee", "float32", 1),
        ("float32", "ieee", "float32", 2),
        ("float32", "tf32", "tf32", 1),
        ("float32", "tf32", "tf32", 2),
        ("float16", "ieee", "float16", 1),
        ("bfloat16", "tf32", "bfloat16", 1),
    ],
)
def test_operands_are_rounded_to_the_formats_of_the_case(
    dtype: Any, precision: Any, products: str, layers: int, input_kind: Any, budget_ns: int
) -> None:
    """Only an answer from such rounded operands matches the reference's to float64 rounding."""
    changes = {"dtype": dtype, "precision": precision, "layers": layers, "input_kind": input_kind}
    problem = Problem(CASE.with_(**changes, input_rate=0.5))
    finding = SpotCheck(problem, 1, budget_ns=budget_ns).check(rounded_answer(problem, 1, 1, products, dtype))
    assert finding.correct, finding.message
    assert len(finding.gradient_errors) == 2 * layers + 1
    assert max(finding.gradient_errors.values()) < 1e-13


def test_cotangent_is_the_inputs_own_or_the_named_one() -> None:
    problem = Problem(CASE)
    answers = {cotangent: rounded_answer(problem, 1, cotangent, "float32", "float32") for cotangent in (0, 1)}
    for named, right in ((None, 1), (0, 0), (1, 1)):
        check = SpotCheck(problem, 1, cotangent=named)
        assert check.check(answers[right]).correct
        assert check.check(answers[1 - right]).message.startswith("gradient of weight is off by")


@pytest.mark.parametrize(
    ("part", "roundoffs", "correct"),
    [
        *[("weight", 99, True), ("weight", 101, False), ("bias", 99, True), ("bias", 101, False)],
        *[("input", 83, True), ("input", 400, False)],
    ],
)
def test_gradient_tolerance_is_the_root_of_the_summed_terms(part: str, roundoffs: float, correct: bool) -> None:
    """Weight and bias sum 500 steps of 20 samples: sqrt(10,000) = 100 roundoffs; the input sums 48 neurons: 84."""
    problem = Problem(CASE.with_(time_steps=500, batch=20))
    right = rounded_answer(problem, 0, 0, "float32", "float32")
    assert right.weights is not None and right.biases is not None and right.input is not None
    off = 1 + roundoffs * 2.0**-24
    wrong = {
        "weight": {"weights": [off * weight for weight in right.weights]},
        "bias": {"biases": [off * bias for bias in right.biases]},
        "input": {"input": off * right.input},
    }[part]
    finding = SpotCheck(problem, 0, budget_ns=ALL_NS).check(replace(right, **wrong))  # type: ignore[arg-type]
    assert finding.correct is correct
    assert correct or finding.message.startswith(f"gradient of {part}")


@pytest.mark.parametrize(("part", "name"), [("weights", "weight"), ("biases", "bias")])
@pytest.mark.parametrize("layers", [1, 2])
def test_missing_weight_or_bias_gradient_is_reported(part: str, name: str, layers: int) -> None:
    problem = Problem(CASE.with_(layers=layers))
    right = rounded_answer(problem, 0, 0, "float32", "float32")
    assert SpotCheck(problem, 0).check(replace(right, **{part: None})).message == f"no gradient of {name}"


def test_gradient_of_another_shape_is_reported() -> None:
    problem = Problem(CASE)
    right = rounded_answer(problem, 0, 0, "float32", "float32")
    assert right.weights is not None
    finding = SpotCheck(problem, 0).check(replace(right, weights=[right.weights[0][:-1]]))
    assert finding.message == "gradient of weight: got shape [47, 48], expected [48, 48]"


# The firing rate


@dataclass(frozen=True)
class Repeated:
    """A neuron without memory that fires once for every input spike: in `count` of 100 steps."""

    enters_as_spikes = True

    count: int
    gain: float = 1.0

    @property
    def case(self) -> Case:
        return CASE.with_(neurons=1, batch=1, time_steps=100, beta=0.0)

    def layers(self) -> list[Layer]:
        return [(np.full((1, 1), self.gain * 1.5, np.float32), np.zeros(1, np.float32))]

    def input(self, which: int) -> Array:
        return (np.arange(100) < self.count).astype(np.float32).reshape(-1, 1, 1)

    def cotangent(self, which: int) -> Array:
        return np.ones((100, 1, 1), np.float32)


@pytest.mark.parametrize(("count", "correct"), [(0, False), (1, True), (50, True), (90, True), (91, False)])
@pytest.mark.parametrize("most", [1, 2])
def test_firing_rate_must_be_between_1_and_90_percent(count: int, correct: bool, most: int) -> None:
    """If it may fire twice a step, up to 180 spikes in a hundred steps; below one in a hundred is still too few."""
    problem = Repeated(count, gain=float(most))
    rule = Rule(**{name: getattr(rule_of(problem.case), name) for name in Rule.__dataclass_fields__})
    rule = replace(rule, most_spikes=most)
    answer = Answer(most * problem.input(0))
    finding = SpotCheck(problem, 0, rule).check(answer)  # type: ignore[arg-type]
    text = "" if correct else f"{most * count / 100:.3g} spikes per step"
    own_is_accused = finding.message if most > 1 else finding.unprovable  # a case accuses nobody
    assert (text in own_is_accused) and (finding.correct and not finding.unprovable) is correct
    unguarded = SpotCheck(problem, 0, rule, guarded=False).check(answer)  # type: ignore[arg-type]
    assert unguarded.correct and not unguarded.unprovable


# Where another answer's spikes differ


def test_differing_neuron_is_compared_regardless_of_the_draw() -> None:
    problem = Problem(CASE.with_(neurons=400))
    right = rounded_answer(problem, 1, 1, "float32", "float32").spikes
    assert right is not None
    drawn, sample = sampled(400, 32, 0), int(sampled(7, 1, 0)[0])
    n = next(number for number in range(400) if number not in drawn)
    b = next(number for number in range(7) if number != sample)
    wrong = right.copy()
    wrong[3, b, n] = 1 - wrong[3, b, n]
    check = SpotCheck(problem, 1)
    assert check.check(Answer(wrong)).correct, "the part that was drawn does not hold it"
    finding = check.check_where(Answer(wrong), wrong != right)
    assert f"the first at t=3, b={b}, n={n}: " in finding.message
    assert finding.compared == 20, "one neuron of one sample"
    nothing = np.zeros(right.shape, bool)
    assert check.check_where(Answer(right), nothing).as_dict() == check.check(Answer(right)).as_dict()
    assert check.check_where(Answer(right), wrong != right).correct
    assert check.check_where(Answer(None), nothing).message == "no spikes"


def test_at_most_1024_differing_neurons_are_compared() -> None:
    problem = Problem(CASE.with_(neurons=400, time_steps=3))
    right = rounded_answer(problem, 1, 1, "float32", "float32").spikes
    assert right is not None
    finding = SpotCheck(problem, 1).check_where(Answer(1 - right), np.ones(right.shape, bool))
    assert finding.compared == 3 * 1024


def test_several_layers_are_compared_by_the_given_network() -> None:
    class Asked:
        def check(self, finding: Finding, answer: Answer, spikes: Array, tolerance: Any) -> None:
            finding.complaints.append("asked")

    problem = Problem(CASE.with_(layers=2))
    answer = rounded_answer(problem, 1, 1, "float32", "float32")
    assert SpotCheck(problem, 1, network=Asked()).check(answer).complaints == ["asked"]
    assert SpotCheck(problem, 1).check(answer).correct


@pytest.mark.parametrize(("factor", "correct"), [(1.0, True), (1.3, False)])
def test_wrong_gradient_of_one_current_is_found_in_16_bits(factor: float, correct: bool) -> None:
    """One of 600 neurons: the gradient as a whole is off by less than its tolerance."""
    problem = lif.Problem(LIF.with_(dtype="bfloat16", neurons=600))
    answer = Program()(problem, 0)
    assert answer.input is not None
    answer.input[:, :, 7] *= factor
    finding = SpotCheck(problem, 0, budget_ns=ALL_NS).check(answer)
    assert finding.correct is correct and ("at 7 of axis 2" in finding.message) is not correct
