"""Tests of the check of a recorded network: whatever is wrong in the recording is found, and named."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from snnbench.adapter.loading import load
from snnbench.adapter.reading import read
from snnbench.backends.torch import Backend
from snnbench.cases.answer import Recording
from snnbench.cases.operations import INPUT, Neurons
from snnbench.proof.links import Links
from snnbench.proof.recorded_check import RecordedCheck
from snnbench.workloads import network
from tests.networks import RESNET, SMALL

LOOP = Path(__file__).parents[3] / "adapters" / "torch-loop.py"
SHORT = RESNET.with_(time_steps=3, batch=2)
SLIGHTLY = np.float32(1.001)


def recorded(case: network.Case) -> tuple[network.Problem, Recording]:
    """A recording of the honest network, on content 0."""
    problem, module = network.Problem(case), load(LOOP)
    session = Backend(case).session(network.builder(module), read(LOOP).variants["unbind"], problem)
    return problem, session.recorded()


def complaint_about(problem: network.Problem, recording: Recording) -> str:
    """The complaint of the whole check of the recording's own answer."""
    check = RecordedCheck(problem, 0, lambda: recording, whole=True, budget_ns=10**9, seed=3)
    return check.check(recording.answer).message


def test_honest_recording_has_no_complaint() -> None:
    assert not complaint_about(*recorded(SHORT))
    assert not complaint_about(*recorded(SHORT.with_(normalisation="frozen")))


def test_every_wrong_value_is_named() -> None:
    problem, honest = recorded(SHORT)
    sites = {operation.of[0]: operation.name for operation in problem.operations() if isinstance(operation, Neurons)}
    for name in set(honest.values) - {INPUT, *sites.values()}:
        wrong = {**honest.values, name: honest.values[name] * SLIGHTLY}
        complaint = complaint_about(problem, replace(honest, values=wrong))
        # A wrong current is found at its site, before the operations are compared.
        expected = f"{sites[name]} by themselves" if name in sites else f"value of {name} is off"
        assert expected in complaint, f"{name}: {complaint!r}"


def test_every_wrong_gradient_of_a_value_is_named() -> None:
    problem, honest = recorded(SHORT)
    currents = {operation.name: operation.of[0] for operation in problem.operations() if isinstance(operation, Neurons)}
    for name in set(honest.values) - {problem.operations()[-1].name, *currents.values()}:
        wrong = {**honest.cotangents, name: honest.cotangents[name] * SLIGHTLY}
        if current := currents.get(name):  # gradients of both sides of a site, so that the site itself is right
            wrong[current] = honest.cotangents[current] * SLIGHTLY
        complaint = complaint_about(problem, replace(honest, cotangents=wrong))
        assert f"gradient of the value of {name} is off" in complaint, f"{name}: {complaint!r}"


def test_every_wrong_gradient_of_a_parameter_is_named() -> None:
    problem, honest = recorded(SHORT)
    assert honest.answer.weights is not None
    names = [f"{parameter} of {each.name}" for each in problem.operations() for parameter in each.parameters]
    for number, name in enumerate(names):
        wrong = list(honest.answer.weights)
        wrong[number] = wrong[number] * SLIGHTLY
        complaint = complaint_about(problem, replace(honest, answer=replace(honest.answer, weights=wrong)))
        assert f"gradient of {name} is off" in complaint, f"{name}: {complaint!r}"


@pytest.mark.parametrize("repeats_bits", [True, False])
def test_timed_answer_is_held_to_the_recorded_one(repeats_bits: bool) -> None:
    problem, recording = recorded(SHORT)
    recording = replace(recording, repeats_bits=repeats_bits)
    check = RecordedCheck(problem, 0, lambda: recording, whole=True, budget_ns=10**9, seed=3)
    right = recording.answer
    assert right.weights is not None and right.spikes is not None
    for number, weight in enumerate(right.weights):
        near, far = (
            [*right.weights[:number], weight * by, *right.weights[number + 1 :]] for by in (1 + 1e-6, SLIGHTLY)
        )
        assert check.check(replace(right, weights=near)).correct is not repeats_bits
        assert "gradient of " in check.check(replace(right, weights=far)).message
    every = [weight * SLIGHTLY for weight in right.weights]
    if repeats_bits:
        first = f"the gradient of weight of stem convolution is not the recorded one (and {len(every) - 1} more)"
        assert check.check(replace(right, weights=every)).message == first
    assert "outputs are others" in check.check(replace(right, spikes=right.spikes * np.float32(1 + 1e-6))).message


@pytest.mark.parametrize("normalisation", ["frozen", "batch"])
def test_halved_gradient_in_16_bits_is_found_without_equal_bits(normalisation: str) -> None:
    """Rounding alone would reach further in a deep network with statistics of a batch."""
    problem, recording = recorded(SHORT.with_(dtype="bfloat16", beta=0.875, normalisation=normalisation))
    check = RecordedCheck(
        problem, 0, lambda: replace(recording, repeats_bits=False), whole=True, budget_ns=10**9, seed=3
    )
    right = recording.answer
    assert right.weights is not None and check.check(right).correct
    for number, weight in enumerate(right.weights):
        halved = [*right.weights[:number], weight / 2, *right.weights[number + 1 :]]
        assert "gradient of " in check.check(replace(right, weights=halved)).message


def test_reach_of_rounding_grows_on_the_way_back() -> None:
    """With frozen statistics as the root of the operations on the longest way; with those of a batch, more."""
    for normalisation in ("frozen", "batch"):
        problem, recording = recorded(SMALL.with_(normalisation=normalisation))
        reach = Links(problem, recording, 3, lambda terms: 1e-6).reach_of_rounding(1e-6)
        names = [f"{parameter} of {each.name}" for each in problem.operations() for parameter in each.parameters]
        by_name = dict(zip(names, reach, strict=True))
        assert by_name["bias of classifier"] == pytest.approx(1e-6)
        after = [each.name for each in problem.operations()][::-1].index("group 1 1 normalisation")
        expected = 1e-6 * (after + 1) ** 0.5
        if normalisation == "frozen":
            assert by_name["weight of group 1 1 normalisation"] == pytest.approx(expected)
        else:
            assert expected < by_name["weight of group 1 1 normalisation"] < 10 * expected


def test_recording_without_a_value_or_cotangent_is_incorrect() -> None:
    problem, honest = recorded(SMALL)
    site = next(each.name for each in problem.operations() if isinstance(each, Neurons))
    lacking = {name: value for name, value in honest.values.items() if name != site}
    assert complaint_about(problem, replace(honest, values=lacking)) == f"no value of {site}"
    for number, words in ((0.0, "no cotangent arrives"), (np.nan, "their cotangent is not finite")):
        cotangents = {**honest.cotangents, site: honest.cotangents[site] * np.float32(number)}
        assert words in complaint_about(problem, replace(honest, cotangents=cotangents))
    other = {**honest.values, INPUT: 1 - honest.values[INPUT]}
    assert "the recorded input is not the input" in complaint_about(problem, replace(honest, values=other))
