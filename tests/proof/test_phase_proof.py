"""Tests of what a pass on new content may know before it, and of an answer that changes after the clock."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from snnbench.proof.comparison import Finding
from snnbench.proof.fresh import Contents
from snnbench.proof.passes import Piece
from snnbench.proof.phase_proof import PhaseProof
from snnbench.workloads.linear_lif import Problem
from tests.fakes import CASE

FIRST = 1000


def proof(loaded: list[Any], **of_piece: Any) -> PhaseProof:
    """The proof of a phase whose session notes what is loaded, and whose outputs are an array of spikes."""
    session: Any = SimpleNamespace(
        load=lambda which, cotangent: loaded.append((which, cotangent)),
        load_cotangent=loaded.append,
        storage=lambda spikes, gradients: [spikes],
        answer=lambda spikes, gradients: SimpleNamespace(spikes=spikes, weights=None, biases=None, input=None),
    )
    check: Any = SimpleNamespace(check=lambda answer: Finding())
    piece = Piece(lambda _: None, lambda outputs: (outputs, None), **of_piece)
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
    phase.glimpse(spikes)
    spikes[CASE.time_steps // 2 :] = float(changes)
    phase.keep(spikes)
    assert phase.fresh.correct is not changes
