"""Tests of fresh passes: new content, answers put back in order, and fresh passes that take too long."""

from typing import Any

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.proof.comparison import Finding
from snnbench.proof.fresh import (
    Contents,
    Memory,
    are_kept,
    are_slow,
    compare_gradients,
    copied,
    differing,
    in_first_order,
    series_of,
    slowdown,
    undecided,
)
from snnbench.proof.spotcheck import SpotCheck
from snnbench.workloads.linear_lif import Problem
from tests.fakes import CASE

MS = 1_000_000
FIRST = 1000


def answer_to(problem: Problem, number: int) -> Answer:
    """The reference's answer to numbered content."""
    case = problem.case
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in problem.layers()]
    entering = problem.input(number).astype(np.float64)
    traces = reference.network_forward(layers, entering, case)
    cotangent = problem.cotangent(number).astype(np.float64)
    gradients = reference.network_backward(layers, entering, traces, cotangent, case)
    return Answer(traces[-1].spikes, gradients.weights, gradients.biases, gradients.input)


def test_content_never_repeats_and_earlier_content_is_dropped() -> None:
    problem = Problem(CASE)
    contents = Contents(problem, 1, FIRST)
    seen = {problem.input(0).tobytes(), problem.input(1).tobytes()}
    expected = FIRST
    for drawn in [0, 0, 1, 3, 0] * 4:
        made = contents.next(drawn)
        numbers = [content.number for content in made]
        assert numbers == [*range(expected, expected + max(1, drawn))]
        assert all((content.order is None) == (drawn > 0) for content in made)
        seen |= {problem.input(number).tobytes() for number in numbers}
        assert {which for name, which in problem._drawn if name == "input"} == {0, 1, *numbers}
        expected = numbers[-1] + 1
    assert len(seen) == 2 + 4 * (3 + 1 + 3)


@pytest.mark.parametrize(("batch", "ordered"), [(1, False), (4, False), (5, True), (64, True)])
def test_small_batch_has_its_content_drawn(batch: int, ordered: bool) -> None:
    (content,) = Contents(Problem(CASE.with_(batch=batch)), 1, FIRST).next(drawn=0)
    assert (content.order is not None) is ordered


def test_order_depends_on_the_seed() -> None:
    orders = [Contents(Problem(CASE), seed, FIRST).next(0)[0].order for seed in range(8)]
    assert len({tuple(order) for order in orders if order is not None}) > 4


@pytest.mark.parametrize("layers", [1, 2])
def test_reordered_answer_equals_the_first_answer(layers: int) -> None:
    problem = Problem(CASE.with_(layers=layers))
    (content,) = Contents(problem, 3, FIRST).next(drawn=0)
    assert content.order is not None
    verified, answer = answer_to(problem, 0), in_first_order(answer_to(problem, content.number), content.order)
    assert SpotCheck(problem, 0, budget_ns=10**12).check(answer).message == ""
    differs = differing(answer, verified)
    assert differs is not None and not differs.any()
    finding = Finding()
    compare_gradients(finding, answer, verified, 1e-12)
    assert finding.correct and finding.compared == CASE.updates
    names = {"weight", "bias", "input"} | ({"weight of layer 1", "bias of layer 1"} if layers == 2 else set())
    assert set(finding.gradient_errors) == names


@pytest.mark.parametrize("part", ["weights", "biases", "input"])
def test_stale_gradient_is_found(part: str) -> None:
    problem = Problem(CASE)
    verified = answer_to(problem, 0)
    assert verified.weights and verified.biases and verified.input is not None
    stale = {
        "weights": [verified.weights[0] * 1.1],
        "biases": [verified.biases[0] * 0.9],
        "input": verified.input[:, ::-1],
    }
    given: dict[str, Any] = {"weights": verified.weights, "biases": verified.biases, "input": verified.input}
    finding = Finding()
    compare_gradients(finding, Answer(verified.spikes, **(given | {part: stale[part]})), verified, 5e-6)
    name = {"weights": "weight", "biases": "bias", "input": "input"}[part]
    assert finding.message.startswith(f"gradient of {name} is off by ")


def test_answers_of_other_shapes_are_not_compared() -> None:
    right = Answer(np.zeros((3, 2, 4)))
    assert differing(Answer(np.zeros((2, 3, 4))), right) is None
    assert differing(Answer(None), right) is None
    order = np.array([1, 0])
    assert in_first_order(Answer(np.zeros((3, 5, 4))), order).spikes.shape == (3, 5, 4)  # type: ignore[union-attr]


def test_copy_does_not_change_with_its_source() -> None:
    spikes, weights = np.zeros(3), [np.ones(2)]
    copy = copied(Answer(spikes, weights))
    spikes[:], weights[0][:] = 7, 7
    assert copy.spikes is not None and copy.weights is not None
    assert copy.spikes.tolist() == [0, 0, 0] and copy.weights[0].tolist() == [1, 1]
    assert copy.biases is None and copy.input is None


def test_copy_reuses_memory_of_the_same_shape_only() -> None:
    memory: Memory = {}
    first = copied(Answer(np.zeros(3), [np.ones(2)]), memory)
    second = copied(Answer(np.full(3, 2.0), [np.full((1, 2), 3.0)]), memory)
    assert second.spikes is first.spikes and second.spikes is not None and second.spikes.tolist() == [2, 2, 2]
    assert first.weights is not None and first.weights[0].tolist() == [1, 1]
    assert second.weights is not None and second.weights[0].tolist() == [[3, 3]]


@pytest.mark.parametrize(
    ("drawn_ns", "series", "waiting_ns", "expected"),
    [
        ([10 * MS] * 3, 1, 0.0, False),
        ([12 * MS + 100_000] * 3, 1, 0.0, False),
        ([12 * MS + 100_001] * 3, 1, 0.0, True),
        ([12 * MS + 100_001] * 3, 1, 2.0, False),
        ([12 * MS + 25_000] * 3, 10, 0.0, False),
        ([12 * MS + 25_001] * 3, 10, 0.0, True),
        ([10 * MS] + [90 * MS] * 2, 1, 0.0, False),
        ([20 * MS] + [90 * MS] * 2, 1, 0.0, True),
    ],
)
def test_fastest_series_may_take_a_fifth_longer(
    drawn_ns: list[float], series: int, waiting_ns: float, expected: bool
) -> None:
    assert are_slow(drawn_ns, 10 * MS, series, waiting_ns) is expected


@pytest.mark.parametrize(
    ("pass_ns", "passes", "expected"), [(MS - 1, 100, 10), (MS - 1, 7, 7), (MS, 100, 1), (10, 1, 1)]
)
def test_short_passes_run_in_series(pass_ns: float, passes: int, expected: int) -> None:
    assert series_of(pass_ns, passes) == expected


def pairs_of(ratios: list[float]) -> list[tuple[float, float]]:
    """Passes on drawn content beside reported ones of 10 ms: `ratio` times the time at which answers are kept."""
    return [(15 * MS * ratio + 100_000, 10 * MS) for ratio in ratios]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([1.1] * 15, True),
        ([1.0] * 15, False),
        ([0.9] * 15, False),
        ([5.0] * 12 + [0.9] * 3, True),
        ([5.0] * 10 + [0.9] * 5, False),  # not sure yet
        ([5.0] * 20 + [0.9] * 10, True),  # honest at random, in a third of all passes
        ([5.0] * 16 + [0.9] * 14, True),
        ([1.5] * 9 + [1 / 1.5] * 6, False),  # noise
        ([1.5] * 18 + [1 / 1.5] * 12, False),
        ([5.0] * 14, False),  # too few
        ([5.0] * 29, False),
    ],
)
def test_kept_answer_is_decided_by_the_mean_of_all_pairs(ratios: list[float], expected: bool) -> None:
    assert are_kept(pairs_of(ratios)) is expected


def test_pairs_end_early_or_at_a_decision() -> None:
    assert undecided([]) and undecided(pairs_of([0.5] * 4))
    assert not undecided(pairs_of([0.9, 0.9, 1.0, 0.9, 0.9]))
    assert undecided(pairs_of([0.9, 1.2, 1.0, 1.0, 1.0])), "they take longer on average"
    assert undecided(pairs_of([5.0] * 14)) and not undecided(pairs_of([5.0] * 15))
    unsure = [5.0] * 10 + [0.9] * 5
    assert undecided(pairs_of(unsure)) and undecided(pairs_of([*unsure, *unsure][:29]))
    assert not undecided(pairs_of([*unsure, *unsure]))


def test_slowdown_is_drawn_over_reported_time() -> None:
    assert slowdown([(30 * MS, 10 * MS), (10 * MS, 10 * MS), (20 * MS, 10 * MS)]) == 2
