"""Tests of fresh passes in simulated noise: it rarely looks like a kept answer, and kept answers are found in it."""

import numpy as np

from snnbench.proof.fresh import HALF, PAIRS, are_kept, undecided
from tests.proof.test_fresh import pairs_of

LOOKS = 1000


def test_noise_rarely_looks_like_a_kept_answer() -> None:
    random = np.random.default_rng(1)
    slow = (random.random((2, LOOKS, PAIRS)) < 0.25).astype(float)
    wrong = {}
    for kind, logarithms in {
        "a quarter of all passes takes twice as long": np.log(2) * (slow[0] - slow[1]),
        "passes differ by a fifth": random.normal(0, 0.2, (LOOKS, PAIRS)),
        "a few take ten times as long": random.standard_t(1.5, (LOOKS, PAIRS)) * 0.1,
    }.items():
        pairs = [pairs_of(np.exp(look).tolist()) for look in logarithms]
        wrong[kind] = sum(are_kept(each[:HALF]) or are_kept(each) for each in pairs) / LOOKS
    assert max(wrong.values()) < 0.003, wrong


def test_answers_kept_in_two_of_three_passes_are_decided() -> None:
    random = np.random.default_rng(2)
    missed = 0
    for hits in random.random((300, PAIRS)) < 2 / 3:
        pairs: list[tuple[float, float]] = []
        while undecided(pairs):
            pairs.append(pairs_of([7.0 if hits[len(pairs)] else 0.8])[0])
        missed += not are_kept(pairs)
    assert missed < 9
