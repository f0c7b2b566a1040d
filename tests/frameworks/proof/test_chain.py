"""Tests of chains: the layers of a network by themselves, linked by spikes and gradients, and judged one by one."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from snnbench.adapter.loading import load
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import Incorrect
from snnbench.backends.torch import Backend
from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.proof.chain import Chain, Link
from snnbench.proof.comparison import Finding
from snnbench.proof.layerwise import Layerwise
from snnbench.proof.spotcheck import SpotCheck
from snnbench.workloads.linear_lif import Problem, builder
from tests.frameworks.proof.test_layerwise import DEEP, ROOT


def chain_of(case: Case) -> Chain:
    """The loop in plain torch."""
    module = load(ROOT / "adapters" / "torch-loop.py")
    variant, backend = read(ROOT / "adapters" / "torch-loop.py").variants["unbind"], Backend(case)
    return Chain(Problem(case), lambda problem: backend.session(builder(module), variant, problem))


def train(session: Any) -> Answer:
    answer: Answer = session.answer(*session.train())
    return answer


def test_layers_are_linked_by_spikes_and_gradients() -> None:
    chain = chain_of(DEEP.with_(layers=3, dtype="float32"))
    links = chain.links(1, train)
    assert links[0].problem.input(0) is chain.problem.input(1)
    assert links[2].problem.cotangent(0) is chain.problem.cotangent(1)
    for before, after in pairwise(links):
        assert np.array_equal(before.answer.spikes, after.problem.input(0))  # type: ignore[arg-type]
        assert np.array_equal(before.problem.cotangent(0), after.answer.input)  # type: ignore[arg-type]


def test_chain_equals_the_network_in_float32() -> None:
    """Only in float32 can both be compared with an independent reference."""
    case = DEEP.with_(layers=3, dtype="float32")
    links = chain_of(case).links(0, train)
    weights, biases = ([getattr(link.answer, name)[0] for link in links] for name in ("weights", "biases"))
    answer = Answer(links[-1].answer.spikes, weights, biases, links[0].answer.input)
    finding = SpotCheck(Problem(case), 0).check(answer)
    assert finding.correct and finding.differing == 0, finding.message


def test_malformed_output_of_a_layer_is_incorrect() -> None:
    with pytest.raises(Incorrect, match="input gradient of layer 1 by itself: got shape none, expected"):
        chain_of(DEEP).links(0, lambda session: replace(train(session), input=None))
    with pytest.raises(Incorrect, match=r"spikes of layer 0 by itself: got shape \[3\], expected \[30, 7, 48\]"):
        chain_of(DEEP).links(0, lambda session: Answer(np.zeros(3)))


def test_irreproducible_layer_is_incorrect() -> None:
    passes: list[int] = []

    def run(session: Any) -> Answer:
        answer = train(session)
        passes.append(1)
        return replace(answer, spikes=1 - answer.spikes) if len(passes) == 3 else answer

    with pytest.raises(Incorrect, match="layer 0 by itself gives other spikes to the same input"):
        chain_of(DEEP).links(0, run)


@pytest.mark.parametrize("part", ["weights", "biases", "input"])
@pytest.mark.parametrize("index", [(3,), (slice(None), 4)], ids=["first axis", "second axis"])
def test_small_part_of_a_gradient_is_judged_by_itself(part: str, index: Any) -> None:
    """An error of a twentieth in one small part is little in the norm of the whole."""
    case = DEEP.with_(neurons=96)
    chain = chain_of(case)
    links = chain.links(0, train)
    weights, biases = ([getattr(link.answer, name)[0] for link in links] for name in ("weights", "biases"))
    right = Answer(links[-1].answer.spikes, weights, biases, links[0].answer.input)

    def finding_of(answer: Answer) -> Finding:
        network = Layerwise(lambda: links, lambda problem, rule: SpotCheck(problem, 0, rule, budget_ns=10**12))
        return SpotCheck(chain.problem, 0, network=network).check(answer)

    assert finding_of(right).correct, finding_of(right).message
    arrays = [np.array(array) for array in (weights if part == "weights" else biases)]
    entering = np.array(right.input)
    target = entering if part == "input" else arrays[0]
    target[index[:1] if target.ndim == 1 and len(index) == 1 else index if target.ndim > 1 else (4,)] *= -0.2
    wrong = replace(right, **{part: entering if part == "input" else arrays})
    assert "allowed)" in finding_of(wrong).message


def test_silent_hidden_layer_is_reported() -> None:
    """The last layer's output could come from its bias alone."""
    links = chain_of(DEEP).links(0, lambda session: Answer(train(session).spikes))
    silent = Link(links[0].problem, Answer(np.zeros_like(links[0].answer.spikes)))
    network = Layerwise(lambda: [silent, links[1]], lambda problem, rule: SpotCheck(problem, 0, rule))
    finding = SpotCheck(Problem(DEEP), 0, network=network).check(links[1].answer)
    assert finding.message.startswith("layer 0 by itself: ")
