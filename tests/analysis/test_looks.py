"""Tests of looks: the trials after which an A/B run looks, and each look's share of alpha."""

import pytest

from snnbench.analysis.looks import FEWEST, Look, looks


def test_the_looks_of_twelve_trials() -> None:
    found = list(looks(12, 0.05))
    assert [look.trials for look in found] == [4, 6, 8, 12]
    assert [look.alpha for look in found] == pytest.approx([0.01, 0.01, 0.01, 0.02])


@pytest.mark.parametrize("most", range(1, 60))
def test_no_look_is_taken_twice_and_all_of_them_spend_alpha(most: int) -> None:
    found = list(looks(most, 0.05))
    numbers = [look.trials for look in found]
    assert numbers == sorted(set(numbers)) and numbers[-1] == most
    assert all(number >= FEWEST for number in numbers[:-1])
    assert sum(look.alpha for look in found) == pytest.approx(0.05)
    assert all(look.alpha > 0 for look in found)


def test_a_run_that_does_not_stop_early_looks_once() -> None:
    assert list(looks(12, 0.05, stops_early=False)) == [Look(12, 0.05)]
