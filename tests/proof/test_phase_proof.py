"""Tests of what a pass on new content may know before it, and of an answer that changes after the clock."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from snnbench.proof.comparison import Finding
from snnbench.proof.fresh import Contents
from snnbench.proof.passes import PhaseCalls
from snnbench.proof.phase_proof import PhaseProof
from snnbench.workloads.linear_lif import Problem
from tests.fakes import CASE

FIRST = 1000


def proof(loaded: list[Any], **of_piece: Any) -> PhaseProof:
    """The proof of a phase whose session notes what is loaded, and whose outputs are an array of spikes."""
    session: Any = SimpleNamespace(
        arranges=False,
        load=lambda which, cotangent: loaded.append((which, cotangent)),
        load_cotangent=loaded.append,
        storage=lambda spikes, gradients: [spikes],
        answer=lambda spikes, gradients: SimpleNamespace(
            spikes=spikes, weights=None, biases=None, input=None, constants=None
        ),
    )
    check: Any = SimpleNamespace(check=lambda answer: Finding(), scanner=None)
    piece = PhaseCalls(lambda _: None, lambda outputs: (outputs, None), **of_piece)
    return PhaseProof(session, piece, check, lambda number: check, Contents(Problem(CASE), 1, FIRST), on_cpu=True)


@pytest.mark.parametrize(
    ("of_piece", "expected"),
    [
        ({"prepare": lambda: None}, [(FIRST, 0), FIRST]),  # a forward pass runs between the two
        ({}, [(FIRST, FIRST)]),
        ({"goes_back": False}, [(FIRST, 0)]),
    ],
    ids=["backward", "train", "inference"],
)
def test_forward_pass_does_not_know_the_cotangent_of_a_timed_backward_pass(of_piece: Any, expected: list[Any]) -> None:
    loaded: list[Any] = []
    phase = proof(loaded, **of_piece)
    phase.prepare(drawn=1)
    phase.load()
    phase.arrive()
    phase.arrive()
    assert loaded == expected


@pytest.mark.parametrize("changes", [False, True])
def test_answer_that_changes_after_the_clock_was_not_done(changes: bool) -> None:
    phase = proof([])
    phase.prepare(drawn=1)
    phase.load()
    spikes = np.zeros(CASE.shape, np.float32)

    def read(spikes: Any, gradients: Any) -> Any:
        spikes[CASE.time_steps // 2 :] = float(changes)
        return SimpleNamespace(spikes=spikes, weights=None, biases=None, input=None, constants=None)

    phase.session.answer = read  # type: ignore[method-assign]
    phase.keep(spikes)
    phase.compare()
    assert phase.fresh.correct is not changes


def test_answer_of_one_pass_of_a_series_is_compared_and_no_library_can_know_of_which() -> None:
    phase, chosen = proof([]), set()
    spikes, compared = np.zeros(CASE.shape, np.float32), list[int]()

    def check_drawn(number: int) -> Any:
        compared.append(number)
        return phase.check

    phase.check_drawn = check_drawn
    for _ in range(50):
        phase.prepare(drawn=5)
        numbers = []
        for _ in range(5):
            phase.load()
            assert phase.content
            numbers.append(phase.content.number)
            phase.keep(spikes)
        phase.compare()
        chosen.add(numbers.index(compared.pop()))
        assert not compared
    assert chosen == {1, 2, 3, 4}, "the first wakes threads, and does not count"
