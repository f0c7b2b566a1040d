"""Tests of the spot check: its rounding, its tolerance for each gradient, and the parts that it compares."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from snnbench.proof.comparison import Finding
from snnbench.proof.spotcheck import Extent, SpotCheck, extent, sampled
from snnbench.proof.tolerance import round_to
from snnbench.workloads import reference
from snnbench.workloads.answer import Answer
from snnbench.workloads.case import Case
from snnbench.workloads.problem import Layer, Problem
from snnbench.workloads.rule import Rule, rule_of
from tests.fakes import CASE

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
        *[("input", 83, True), ("input", 85, False)],
    ],
)
@pytest.mark.parametrize("layers", [1, 2])
def test_gradient_tolerance_is_the_root_of_the_summed_terms(
    part: str, roundoffs: float, correct: bool, layers: int
) -> None:
    """Weight and bias sum 500 steps of 20 samples: sqrt(10,000) = 100 roundoffs; the input sums 48 neurons: 84."""
    problem = Problem(CASE.with_(time_steps=500, batch=20, layers=layers))
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


# How much is compared


@pytest.mark.parametrize(
    ("neurons", "batch", "time_steps", "budget_ns", "expected"),
    [
        # a spike takes 250 + 6 * 512 / 40 = 326.8 ns, 500 * 16 * 512 spikes take 1.3386 s
        (512, 16, 500, 1_338_572_801, Extent(512, 16)),
        (512, 16, 500, 1_338_572_800, Extent(512, 16)),
        (512, 16, 500, 1_338_572_799, Extent(63, 1)),
        # 557.2 ns: a neuron of 8000 spikes takes 4.4576 ms, 250 ms hold 56; a sample of 1,024,000 takes 0.57 s
        (2048, 16, 500, 2_000_000_000, Extent(56, 1)),
        # 403.6 ns: a neuron of 25,600 spikes 10.332 ms, a sample of 102,400 41.329 ms; 1 s holds 96 and 24
        (1024, 256, 100, 8_000_000_000, Extent(96, 24)),
        (1024, 256, 100, 0, Extent(32, 1)),
        (16, 256, 100, 0, Extent(16, 1)),
    ],
)
def test_extent_of_a_budget_agrees_with_a_hand_computation(
    neurons: int, batch: int, time_steps: int, budget_ns: int, expected: Extent
) -> None:
    """A value takes 250 ns and three products of 2 N operations at 40 a nanosecond.

    A part is an eighth of the budget: each of four phases has half for neurons, at least 32, and half for samples.
    """
    assert extent(CASE.with_(neurons=neurons, batch=batch, time_steps=time_steps), budget_ns) == expected


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_draw_is_distinct_and_contains_both_ends(count: int) -> None:
    inner: set[int] = set()
    for seed in range(200):
        drawn = sampled(10, count, seed).tolist()
        assert drawn == sorted(set(drawn)) and len(drawn) == count
        assert (drawn[0], drawn[-1]) == (0, 9)
        inner |= {*drawn[1:-1]}
    assert inner == (set(range(1, 9)) if count > 2 else set())


def test_draw_of_all_is_all_and_of_one_is_any() -> None:
    assert sampled(4, 4, 1).tolist() == sampled(4, 9, 1).tolist() == [0, 1, 2, 3]
    assert {sampled(4, 1, seed).tolist()[0] for seed in range(100)} == {0, 1, 2, 3}
    assert all(len(sampled(4, 1, seed)) == 1 for seed in range(100))


# The firing rate


@dataclass(frozen=True)
class Repeated:
    """A neuron without memory that fires once for every input spike: in `count` of 100 steps."""

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
    assert finding.correct is correct
    text = f"{most * count / 100:.3g} spikes per step, outside the window 0.01 to 0.9"
    assert finding.message == ("" if correct else text)
    assert SpotCheck(problem, 0, rule, guarded=False).check(answer).correct  # type: ignore[arg-type]


# Distance of another neuron


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
    assert check.distance(Answer(None)).compared == 0
    assert check.distance(Answer(np.zeros((7, 20, 48)))).compared == 0


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


# Several layers


@dataclass(frozen=True)
class Chain:
    """Three neurons. The first hidden one gets these weights from inputs of 1, and the first output follows it.

    It has no memory: each step depends on that step alone.
    """

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
    assert "1 of 9 spikes differ" in finding.message


@pytest.mark.parametrize(("weight", "excused"), [(1 - 2.0**-22, True), (0.9, False)])
def test_fixed_point_sample_may_diverge_next_to_a_multiple(weight: float, excused: bool) -> None:
    """Both are truncated to 0.75, a quarter below the threshold; rounding may move the first to 1."""
    problem = Chain((0.0, 0.0, weight))
    numbers = {name: getattr(rule_of(problem.case), name) for name in Rule.__dataclass_fields__}
    check = SpotCheck(problem, 0, Rule(**(numbers | {"unit": 0.25})), guarded=False)  # type: ignore[arg-type]
    assert check.check(flipped(problem, False)).correct
    assert check.check(flipped(problem, False, (1, 3))).correct is excused


def test_several_layers_are_compared_by_the_given_network() -> None:
    class Asked:
        def check(self, finding: Finding, answer: Answer, spikes: Array, tolerance: Any) -> None:
            finding.complaints.append("asked")

    problem = Problem(CASE.with_(layers=2))
    answer = rounded_answer(problem, 1, 1, "float32", "float32")
    assert SpotCheck(problem, 1, network=Asked()).check(answer).complaints == ["asked"]
    assert SpotCheck(problem, 1).check(answer).correct
