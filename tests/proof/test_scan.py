"""Tests of the scan: NumPy's reference and a scan agree, and a fault in one place of a whole answer is found."""

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from snnbench.cases import reference
from snnbench.cases.answer import Answer
from snnbench.cases.case import PROFILES
from snnbench.cases.rule import rule_of
from snnbench.cases.surrogate import FORMULAS
from snnbench.proof import following, scan
from snnbench.proof.fresh import Contents
from snnbench.proof.passes import PhaseCalls
from snnbench.proof.phase_proof import PhaseProof
from snnbench.proof.scan import MOST_SUSPECTS, Scanner, Sums
from snnbench.proof.spotcheck import SpotCheck
from snnbench.workloads import lif, linear_lif
from tests.answers import answer_to
from tests.fakes import CASE, CUT, LIF, profile
from tests.held import Arrays, held, scanning
from tests.proof.test_jumps import alone, layer

ALL_NS = 10**12
WIDE = CASE.with_(neurons=150)
"""So wide that a spot check of a part compares a third of it."""


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("surrogate", FORMULAS)
@pytest.mark.parametrize("chunks", [{}, CUT], ids=["whole", "cut"])
def test_scan_computes_the_reference(name: str, surrogate: Any, chunks: dict[str, Any]) -> None:
    rule = rule_of(CASE.with_(**profile(name), surrogate=surrogate, **chunks))
    random = np.random.default_rng(5)
    current, cotangent = random.normal(0.3, 1, (2, 30, 4, 6))
    spikes = (random.random(current.shape) < 0.3).astype(float)
    trace = reference.forward(current, rule, forced=spikes)
    potential = scan.follow(Arrays(), current, spikes, rule)
    assert np.array_equal(potential, trace.potential)
    expected = reference.backward(cotangent, trace, rule)
    np.testing.assert_allclose(scan.backward(Arrays(), cotangent, potential, spikes, rule), expected, rtol=1e-12)


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("make", [linear_lif.Problem, lif.Problem])
def test_whole_answer_is_compared_as_numpy_compares_it(name: str, make: Any) -> None:
    problem = make((WIDE if make is linear_lif.Problem else LIF).with_(**profile(name)))
    answer, arrays = answer_to(problem, 0, 0, "float32"), Arrays()
    finding = scanning(problem, arrays).check(held(answer, arrays))
    expected = SpotCheck(problem, 0, budget_ns=ALL_NS).check(answer)
    assert expected.correct and finding.correct, finding.message
    assert finding.gradient_errors == pytest.approx(expected.gradient_errors, rel=1e-6)
    assert finding.cosines == pytest.approx(expected.cosines)
    fields = ("compared", "differing", "unexplained", "neurons", "samples", "seed")
    assert [getattr(finding, each) for each in fields] == [getattr(expected, each) for each in fields]
    assert finding.rate == pytest.approx(expected.rate)


def test_only_a_part_of_an_answer_is_copied_to_the_host() -> None:
    problem = linear_lif.Problem(WIDE.with_(batch=40))
    answer, arrays = held(answer_to(problem, 0, 0, "float32"), Arrays()), Arrays()
    answer = answer.each(lambda each: replace(each, arrays=arrays))
    check = scanning(problem, arrays)
    assert check.check(answer).correct
    whole = sum(np.prod(each.shape) for each in (answer.spikes, answer.input, answer.weights[0]))  # type: ignore[index]
    assert arrays.read < whole / 2


def flipped(answer: Answer) -> Answer:
    spikes = answer.spikes.copy()  # type: ignore[union-attr]
    spikes[11, 3, 77] = 1 - spikes[11, 3, 77]
    return replace(answer, spikes=spikes)


def row_off(answer: Answer) -> Answer:
    weight = answer.weights[0].copy()  # type: ignore[index]
    weight[77] *= 1.01
    return replace(answer, weights=[weight])


def bias_off(answer: Answer) -> Answer:
    bias = answer.biases[0].copy()  # type: ignore[index]
    bias[77] += 1
    return replace(answer, biases=[bias])


def sample_off(answer: Answer) -> Answer:
    entering = answer.input.copy()  # type: ignore[union-attr]
    entering[:, 4] *= 1.01
    return replace(answer, input=entering)


def spike_missing(answer: Answer) -> Answer:
    spikes = answer.spikes.copy()  # type: ignore[union-attr]
    spikes[11, 3, 77] = np.nan
    return replace(answer, spikes=spikes)


def input_missing(answer: Answer) -> Answer:
    return replace(answer, input=None)


def number_missing(answer: Answer) -> Answer:
    weight = answer.weights[0].copy()  # type: ignore[index]
    weight[77, 5] = np.nan
    return replace(answer, weights=[weight])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (flipped, "spikes differ, the first at t=11, b=3, n=77"),
        (row_off, "gradient of weight is off by"),
        (bias_off, "gradient of bias is off by"),
        (sample_off, "gradient of input is off by"),
        (number_missing, "gradient of weight is not finite"),
        (spike_missing, "spikes differ, the first at t=11, b=3, n=77"),
        (input_missing, "gradient of input: got shape none"),
    ],
)
def test_fault_in_one_place_is_found_in_every_check(fault: Callable[[Answer], Answer], message: str) -> None:
    problem, arrays = linear_lif.Problem(WIDE), Arrays()
    answer = fault(answer_to(problem, 0, 0, "float32"))
    findings = [scanning(problem, arrays, seed=seed).check(held(answer, arrays)) for seed in range(4)]
    assert all(message in finding.message for finding in findings), [finding.message for finding in findings]
    assert all(json.dumps(finding.as_dict(), allow_nan=False) for finding in findings), "a reply is JSON"
    alone = [SpotCheck(problem, 0, seed=seed).check(answer).correct for seed in range(20)]
    assert any(alone) or fault is input_missing, "a check of a part misses it"


def test_spike_that_rounding_decides_is_right() -> None:
    problem, arrays = linear_lif.Problem(WIDE), Arrays()
    problem.layers()[0][0][77], problem.layers()[0][1][77] = 0, 1 - 2.0**-24
    answer = answer_to(problem, 0, 0, "float32")
    spikes = answer.spikes.copy()  # type: ignore[union-attr]
    spikes[0, 2, 77] = 1 - spikes[0, 2, 77]
    finding = scanning(problem, arrays).check(held(Answer(spikes), arrays))
    assert finding.unexplained == 0 and finding.differing >= 1, finding.message


@pytest.mark.parametrize("make", [alone, layer])
def test_what_exceeds_a_tolerance_is_judged_as_any_sample(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding decides on the side of a surrogate's jump, so that a gradient is far off, and right."""
    problem, arrays = make(), Arrays()
    answer = held(answer_to(problem, 0, 0, "float32"), arrays)
    checks = [partial(scanning, problem, arrays, seed=seed) for seed in range(4)]
    assert all(check().check(answer).correct for check in checks)
    monkeypatch.setattr(following, "near_jumps", lambda trace, rule: np.zeros(trace.potential.shape, bool))
    assert all("is off by" in check().check(answer).message for check in checks), "a scan suspects it"


def test_with_less_time_a_part_of_the_neurons_is_scanned() -> None:
    problem, arrays = linear_lif.Problem(WIDE), Arrays()
    finding = scanning(problem, arrays, most_neurons=100).check(held(answer_to(problem, 0, 0, "float32"), arrays))
    assert finding.correct and (finding.neurons, finding.samples, finding.seed) == (100, 1, 0)
    assert finding.compared == WIDE.time_steps * (WIDE.batch * 100 + WIDE.neurons)
    assert set(finding.gradient_errors) == {"weight", "bias", "input"}


def test_the_worst_parts_are_suspects() -> None:
    sizes = np.full(100, 4.0)
    error = np.zeros(100)
    error[[3, 60]] = (4 * 0.3**2, 4 * 0.2**2)
    sums = Sums(error, sizes, sizes)
    assert sums.suspects(0.1).tolist() == [3]
    assert sums.suspects(0.09).tolist() == [3, 60]
    assert sums.suspects(0.2).tolist() == []
    assert Sums(np.full(100, 4 * 0.01**2), sizes, sizes).suspects(0.009).tolist() == [0], "off as a whole"
    assert len(Sums(sizes, sizes, sizes).suspects(0.1)) == MOST_SUSPECTS
    small = np.where(np.arange(100) == 5, 1e-9, 4.0)
    assert Sums(np.where(small < 1, 1e-9, 0), small, small).suspects(0.1).tolist() == [], "too small to matter"


@pytest.mark.parametrize(
    ("free_bytes", "entries"), [(1 << 40, scan.MOST_ENTRIES), (100_000_000, 600_000), (2_000_000, 0), (0, 0)]
)
def test_blocks_fit_into_the_memory_of_the_device(free_bytes: int, entries: int) -> None:
    """At the least, a block of one neuron."""
    case = CASE.with_(neurons=500, time_steps=50)
    assert scan.entries_that_fit(case, free_bytes) == pytest.approx(entries, rel=0.2)
    assert Scanner(Arrays(free_bytes), case, rule_of(case), None).has_room() is (entries > 0)


def phase_proof(problem: Any, arrays: Arrays, answers: list[Answer]) -> PhaseProof:
    """The proof of a phase whose session gives these answers in turn."""
    session: Any = SimpleNamespace(held=lambda *_: held(answers.pop(0), arrays), load=lambda *_: None, arranges=True)
    check = scanning(problem, arrays)
    piece = PhaseCalls(lambda _: None, lambda outputs: (outputs, None))
    return PhaseProof(session, piece, check, lambda _: check, Contents(problem, 1, 1000), on_cpu=False)


@pytest.mark.parametrize("fault", [None, flipped, row_off, bias_off, sample_off, number_missing])
def test_answer_to_content_in_another_order_is_compared_where_it_is(fault: Callable[[Answer], Answer] | None) -> None:
    problem, arrays = linear_lif.Problem(WIDE), Arrays()
    right = answer_to(problem, 0, 0, "float32")
    given = fault(right) if fault else right
    answers = [right]
    proof = phase_proof(problem, arrays, answers)
    proof.keep_last(None)
    proof.prepare(drawn=0)
    proof.load()
    order = proof.content.order  # type: ignore[union-attr]
    assert order is not None and ("input", 1001) not in problem._drawn, "the device makes the content"
    ordered = given.each(lambda each: each[:, order] if each.ndim == 3 else each)
    answers += [ordered]
    proof.keep(None)
    proof.compare()
    assert proof.spot is not None and proof.spot.correct
    assert proof.fresh.correct is (fault is None), proof.fresh.message
    assert proof.fresh.compared == right.spikes.size or fault  # type: ignore[union-attr]


def test_wide_tolerance_of_a_few_neurons_is_none_of_a_whole_answer() -> None:
    """Rounding magnifies the gradients of some neurons, and their tolerance, by hundreds."""
    slow = {"beta": 0.99, "time_steps": 100, "surrogate": "atan", "slope": 5.0, "seed": 780819}
    problem, arrays = lif.Problem(LIF.with_(**slow, neurons=150)), Arrays()
    right = answer_to(problem, 0, 0, "float32")
    answers = [right]
    proof = phase_proof(problem, arrays, answers)
    proof.keep_last(None)
    assert proof.spot and proof.spot.correct, proof.spot
    proof.prepare(drawn=0)
    proof.load()
    order = proof.content.order  # type: ignore[union-attr]
    answers += [replace(right, spikes=right.spikes[:, order], input=1.0003 * right.input[:, order])]  # type: ignore[index]
    proof.keep(None)
    proof.compare()
    assert "gradient of input is off by 0.0003" in proof.fresh.message


def test_a_scan_takes_no_more_memory_than_the_device_has() -> None:
    """Also where a weight has more entries than a block of steps and samples."""
    for shape, free_bytes in (((4, 4, 1500), 150_000_000), ((2, 8, 2000), 300_000_000), ((100, 50, 200), 150_000_000)):
        steps, batch, neurons = shape
        case = CASE.with_(time_steps=steps, batch=batch, neurons=neurons, input_rate=0.5)
        problem, arrays = linear_lif.Problem(case), Arrays(free_bytes)
        answer = held(answer_to(problem, 0, 0, "float32").each(lambda each: each.astype(np.float32)), arrays)
        scanner = Scanner(arrays, case, rule_of(case), problem.layers()[0])
        assert scanner.has_room()
        given = problem.input(0), problem.cotangent(0)
        tracemalloc.start()
        scanner.scan(*given, answer, np.arange(neurons))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        copies = 4 * (8 * steps * batch * neurons + 2 * neurons**2)  # what the scan does not make
        assert peak + copies <= free_bytes, f"{peak / 1e6:.0f} and {copies / 1e6:.0f} MB"
