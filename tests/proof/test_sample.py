"""Tests of samples of a case: any blocks give a plain loop's currents, and the spot check computes them once."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.rule import rule_of
from snnbench.proof import following, network_check, sample
from snnbench.proof.extent import sampled
from snnbench.proof.spotcheck import SpotCheck
from snnbench.proof.tolerance import of_sums, round_to
from snnbench.workloads.linear_lif import Problem
from tests.fakes import CASE

LARGE = CASE.with_(neurons=96, batch=5, time_steps=23, input_rate=0.1)
CASES = {
    "float32": LARGE,
    "several samples": LARGE.with_(batch=7, neurons=33),
    "tf32": LARGE.with_(device="cuda", precision="tf32"),
    "bfloat16": LARGE.with_(dtype="bfloat16"),
    "float64": LARGE.with_(dtype="float64"),
}
PARTS = {"few neurons": (np.arange(5), np.array([0, 3, 17, 32])), "one sample": (np.array([2]), np.arange(33))}


def plain(case: Case, problem: Problem, batch: Any, neurons: Any) -> tuple[np.ndarray, np.ndarray]:
    """Current and margin, by a sum for each neuron of each sample in each step."""
    (weight, bias), inputs = problem.layers()[0], problem.input(0)
    chosen = round_to(weight[neurons], case.product_format)
    offset = round_to(bias[neurons], case.dtype)
    shape = (case.time_steps, len(batch), len(neurons))
    current, terms = np.empty(shape), np.empty(shape)
    for t, b, n in np.ndindex(shape):
        products = chosen[n] * inputs[t, batch[b]].astype(np.float64)
        current[t, b, n] = products.sum() + offset[n]
        terms[t, b, n] = np.abs(products).sum() + np.abs(offset[n])
    return current, of_sums(terms, rule_of(case), case)


@pytest.fixture(params=[(1, 1), (300, 7), (1 << 22, 1024)], ids=["small blocks", "uneven blocks", "one block"])
def block_sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Blocks of time and of neurons."""
    monkeypatch.setattr(sample, "ENTRIES_AT_ONCE", request.param[0])
    monkeypatch.setattr(sample, "NEURONS_AT_ONCE", request.param[1])
    yield


@pytest.mark.usefixtures("block_sizes")
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", CASES)
def test_currents_and_margins_equal_plain_sums_bitwise(name: str, part: str) -> None:
    case, (batch, neurons) = CASES[name], PARTS[part]
    problem = Problem(case)
    first = sample.FirstLayer(problem.layers()[0], problem.input(0), case, rule_of(case))
    current, margin = plain(case, problem, batch, neurons)
    assert np.array_equal(first.draw(batch, neurons).current, current)
    b, n = (axis.ravel() for axis in np.meshgrid(batch, neurons, indexing="ij"))
    shuffled = np.random.Generator(np.random.Philox(1)).permutation(len(b))
    columns, margins = first.columns(b[shuffled], n[shuffled])
    assert np.array_equal(columns, current.reshape(case.time_steps, -1)[:, shuffled])
    assert np.array_equal(margins, margin.reshape(case.time_steps, -1)[:, shuffled])


def test_dense_currents_agree_with_plain_sums_in_float64() -> None:
    case = LARGE.with_(input_kind="gaussian", input_rate=1.0)
    problem, (batch, neurons) = Problem(case), PARTS["few neurons"]
    first = sample.FirstLayer(problem.layers()[0], problem.input(0), case, rule_of(case))
    current, margin = plain(case, problem, batch, neurons)
    assert np.abs(first.draw(batch, neurons).current - current).max() < 96 * 2.0**-53 * 10
    _, margins = first.columns(batch, np.full_like(batch, neurons[1]))
    assert np.allclose(margins, margin[:, :, 1], rtol=1e-13, atol=0)


def right_answer(check: SpotCheck) -> Answer:
    """The reference's own answer to a check's first input."""
    case = check.case
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in check.layers]
    inputs, problem = check.inputs.astype(np.float64), Problem(case)
    traces = reference.network_forward(layers, inputs, case)
    gradients = reference.network_backward(layers, inputs, traces, problem.cotangent(0).astype(np.float64), case)
    return Answer(traces[-1].spikes, gradients.weights, gradients.biases, gradients.input)


@pytest.mark.parametrize(("layers", "budget_ns"), [(1, 0), (1, 10**12), (2, 0)])
def test_four_phases_share_currents_and_gradients(monkeypatch: pytest.MonkeyPatch, layers: int, budget_ns: int) -> None:
    calls: list[str] = []

    def counted(module: Any, name: str) -> None:
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, **given: calls.append(name) or real(*args, **given))

    check = SpotCheck(Problem(LARGE.with_(layers=layers)), 0, budget_ns=budget_ns)
    whole = right_answer(check)
    for module, name in ((sample.FirstLayer, "draw"), (following, "of_potentials"), (network_check, "of_potentials")):
        counted(module, name)
    for name in ("backward", "network_forward", "network_backward"):
        counted(reference, name)
    for answer in (Answer(whole.spikes), Answer(whole.spikes), whole, whole):
        finding = check.check(answer)
        assert finding.correct and bool(finding.gradient_errors) == (answer is whole)
    parts = 1 if budget_ns else 2  # an answer without a difference needs no margins
    expected = {"draw": parts, "backward": parts} if layers == 1 else {"network_forward": 1}
    expected |= {} if layers == 1 else {"of_potentials": 2, "network_backward": 1, "backward": 2}
    assert {name: calls.count(name) for name in set(calls)} == expected


def test_cached_answer_does_not_excuse_the_next() -> None:
    check = SpotCheck(Problem(LARGE), 0)
    right = right_answer(check)
    assert check.check(right).correct
    wrong = np.array(right.spikes)
    wrong[11] = 1 - wrong[11]
    assert "spikes differ" in check.check(Answer(wrong)).message
    assert right.weights is not None
    off = replace(right, weights=[right.weights[0] * 1.001])
    assert "gradient of weight is off" in check.check(off).message
    assert check.check(right).as_dict() == SpotCheck(Problem(LARGE), 0).check(right).as_dict()


def test_block_size_is_bounded() -> None:
    """In float64 at once: 2^22 inputs or 1024 rows, and at least one step."""
    assert sample.blocks(5, 2**21) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert sample.blocks(2, 2**21 + 1) == sample.blocks(2, 2**30) == [slice(0, 1), slice(1, 2)]
    assert sample.weight_slices(1024) == [slice(0, 1024)]
    assert sample.weight_slices(2050) == [slice(0, 1024), slice(1024, 2048), slice(2048, 2050)]


def test_a_step_of_a_draw_holds_the_inputs_of_all_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """5 samples of 96 neurons are 480 numbers: a block of 960 holds two of the 23 steps."""
    monkeypatch.setattr(sample, "ENTRIES_AT_ONCE", 960)
    taken: list[list[slice]] = []
    real = sample.blocks
    monkeypatch.setattr(sample, "blocks", lambda *given: taken.append(real(*given)) or taken[-1])
    problem = Problem(LARGE)
    first = sample.FirstLayer(problem.layers()[0], problem.input(0), LARGE, rule_of(LARGE))
    first.draw(np.arange(5), np.arange(3))
    assert [len(steps) for steps in taken] == [12]


def test_a_problem_draws_each_array_once() -> None:
    problem = Problem(LARGE)
    assert problem.input(1) is problem.input(1) and problem.cotangent(0) is problem.cotangent(0)
    assert problem.layers()[0][0] is problem.layers()[0][0]
    assert problem == Problem(LARGE) and problem.input(1) is not Problem(LARGE).input(1)


@pytest.mark.parametrize(
    "position",
    [(slice(None), 3, slice(40, 44)), (11, slice(None), 17), (22, 4, 95), (slice(None), slice(None), 60)],
    ids=["four neurons in a sample", "one step", "one place", "one neuron"],
)
def test_whole_comparison_catches_every_change(position: Any) -> None:
    check = SpotCheck(Problem(LARGE), 0, budget_ns=10**12)
    right = right_answer(check)
    assert check.check(right).correct and check.check(right).compared == LARGE.updates
    wrong = np.array(right.spikes)
    wrong[position] = 1 - wrong[position]
    assert "spikes differ" in check.check(replace(right, spikes=wrong)).message


@pytest.mark.parametrize("part", ["weight", "bias", "input"])
def test_no_gradient_escapes_where_everything_is_compared(part: str) -> None:
    check = SpotCheck(Problem(LARGE), 0, budget_ns=10**12)
    right = right_answer(check)
    assert right.weights is not None and right.biases is not None and right.input is not None
    weights, biases, entering = (np.array(array) for array in (right.weights[0], right.biases[0], right.input))
    {"weight": weights, "bias": biases, "input": entering.transpose(1, 0, 2)}[part][2] = 0
    wrong = Answer(right.spikes, [weights], [biases], entering)
    assert f"gradient of {part} is off by" in check.check(wrong).message


def test_another_seed_is_another_part_and_the_finding_says_which() -> None:
    parts = []
    for seed in range(40):
        check = SpotCheck(Problem(LARGE), 0, seed=seed)
        finding = check.check(right_answer(check))
        assert (finding.neurons, finding.samples, finding.seed) == (36, 1, seed)
        parts.append((*sampled(96, 32, seed), "of", *sampled(5, 1, seed)))
    assert len(set(parts)) == 40
    assert {part[-1] for part in parts} == set(range(5)), "every sample has its turn"
    whole = SpotCheck(Problem(LARGE), 0, budget_ns=10**12, seed=3)
    finding = whole.check(right_answer(whole))
    assert (finding.neurons, finding.samples, finding.seed) == (96, 5, None)
