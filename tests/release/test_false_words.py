"""Tests of A/B tests on simulated machines that drift: the rate of false words, and of slowdowns that are found."""

import numpy as np
import pytest

from benchmarks import drift as simulation


@pytest.mark.parametrize("world", simulation.WORLDS, ids=lambda world: world.about)
def test_false_positive_rate_is_about_5_percent_at_most(world: simulation.World) -> None:
    """With a rate of 5 %, more than 6 of 60 draws have a false word once in 30 times."""
    outcomes = [simulation.test(world, np.random.default_rng([1, number])) for number in range(60)]
    assert sum(outcome.false_words > 0 for outcome in outcomes) <= 6


@pytest.mark.parametrize("world", simulation.WORLDS[:5], ids=lambda world: world.about)
def test_10_percent_slowdown_is_found_under_every_drift(world: simulation.World) -> None:
    """One of fifteen works takes 10 % longer."""
    outcomes = [simulation.test(world, np.random.default_rng([2, number]), factor=1.1) for number in range(20)]
    assert np.mean([outcome.detected for outcome in outcomes]) > 0.85
    assert np.mean([outcome.same for outcome in outcomes]) > 0.4
    assert sum(outcome.false_words > 0 for outcome in outcomes) <= 3
