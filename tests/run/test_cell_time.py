"""Tests of the time of a phase from the time of a pass: the worker's own timing, on a clock that passes move."""

import pytest

from snnbench.proof import fresh
from snnbench.run import cell_time
from snnbench.worker.timing import MOST_KEPT, Budget
from tests.recordings import timed

MS = 1_000_000
BUDGET = Budget(warmup_passes=2, repetitions=7, min_repetition_ns=10 * MS, max_phase_ns=2000 * MS)


def test_long_pass_is_repeated_up_to_the_limit_of_a_phase() -> None:
    """A first call, 2 warm-up passes, and as many repetitions of 500 ms as 2 s have room for."""
    spent, passes = cell_time.phase_ns(500 * MS, BUDGET)
    assert (spent, passes) == ((1 + 2 + 4) * 500 * MS, 1)


def test_very_long_pass_is_repeated_three_times() -> None:
    spent, _ = cell_time.phase_ns(60_000 * MS, BUDGET)
    assert spent == (1 + 2 + 3 + 1) * 60_000 * MS  # the last on content drawn anew


def test_short_pass_fills_repetitions_and_has_fresh_passes() -> None:
    """10 passes of 1 ms make a repetition. A short pass runs once more before new content."""
    spent, passes = cell_time.phase_ns(1 * MS, BUDGET)
    assert (spent, passes) == ((1 + 2 + 7 * 10 + 2 * (fresh.ORDERED + fresh.DRAWN)) * MS, 10)


@pytest.mark.parametrize("pass_ns", [20, 2_000, 50_000])
def test_tiny_pass_takes_the_time_of_its_repetitions(pass_ns: int) -> None:
    spent, passes = cell_time.phase_ns(pass_ns, BUDGET)
    assert 7 * 10 * MS <= spent < 1.3 * 7 * 10 * MS
    assert passes <= cell_time.MOST_SIMULATED


def test_backward_pass_needs_a_forward_pass_and_few_graphs() -> None:
    spent, passes = cell_time.phase_ns(100_000, BUDGET, forward_ns=300_000)
    assert passes == MOST_KEPT
    assert spent == pytest.approx(
        400_000 * (1 + 2 + 7 * MOST_KEPT + 2 * fresh.ORDERED + (1 + fresh.LONGEST_SERIES) * fresh.DRAWN)
    )


def test_budget_of_a_record_gives_its_passes_again() -> None:
    phase = timed("a", train=2.0).phases["train"] | {"warmup_ns": [MS, MS]}
    budget = cell_time.recorded_budget(phase)
    assert (budget.warmup_passes, budget.repetitions) == (2, 3)
    spent, passes = cell_time.phase_ns(2 * MS, budget)
    assert (spent, passes) == ((1 + 2 + 3 * 2 + 2 * (fresh.ORDERED + fresh.DRAWN)) * 2 * MS, 2)


@pytest.mark.parametrize(("pass_ms", "passes"), [(1, 52), (10, 17), (5000, 8)])
def test_memory_cell_runs_passes_until_growth_shows(pass_ms: int, passes: int) -> None:
    assert cell_time.memory_ns(pass_ms * MS) == pytest.approx(passes * pass_ms * MS)
