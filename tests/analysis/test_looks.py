"""Tests of looks: the trials after which an A/B run looks, and each look's share of alpha."""

import pytest

from snnbench.analysis.looks import FEWEST_TRIALS, Look, looks


def test_looks_of_twelve_trials() -> None:
    schedule = list(looks(12, 0.05))
    assert [look.trials for look in schedule] == [4, 6, 8, 12]
    assert [look.alpha for look in schedule] == pytest.approx([0.01, 0.01, 0.01, 0.02])


def test_look_has_four_trials_at_least() -> None:
    assert [look.trials for look in looks(9, 0.05)] == [5, 6, 9]


@pytest.mark.parametrize("most", range(1, 60))
def test_looks_are_distinct_and_spend_alpha(most: int) -> None:
    schedule = list(looks(most, 0.05))
    numbers = [look.trials for look in schedule]
    assert numbers == sorted(set(numbers)) and numbers[-1] == most
    assert all(number >= FEWEST_TRIALS for number in numbers[:-1])
    assert sum(look.alpha for look in schedule) == pytest.approx(0.05)
    assert all(look.alpha > 0 for look in schedule)


def test_run_without_early_stop_looks_once() -> None:
    assert list(looks(12, 0.05, stops_early=False)) == [Look(12, 0.05)]
