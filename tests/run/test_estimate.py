"""Tests of the estimate of a run's remaining time from its ended cells."""

import numpy as np
import pytest

from snnbench.adapter.contender import Work
from snnbench.cases.case import Case
from snnbench.plan.cell import Cell, cells
from snnbench.run.estimate import Estimate, format_duration
from snnbench.run.progress import Pace
from tests.bench import PROTOCOL
from tests.fakes import CASE

SMALL, LARGE = CASE.with_(neurons=16), CASE.with_(neurons=64)


def cell(library: str, case: Case = SMALL, trial: int = 0, measure: str = "time") -> Cell:
    return Cell(case, library, "default", trial, measure)  # type: ignore[arg-type]


def test_no_estimate_before_the_first_cell_has_ended() -> None:
    assert Estimate([cell("a")]).seconds_left() is None


def test_next_trial_takes_the_mean_of_earlier_ones() -> None:
    estimate = Estimate([cell("a", trial=trial) for trial in range(4)])
    estimate.learn(cell("a", trial=0), 2.0)
    estimate.learn(cell("a", trial=1), 4.0)
    assert estimate.seconds_left() == pytest.approx(6.0)


def test_unknown_cell_is_estimated_from_its_contender_then_all() -> None:
    estimate = Estimate([cell("a"), cell("a", LARGE), cell("b", LARGE)])
    estimate.learn(cell("a"), 3.0)
    assert estimate.seconds_left() == pytest.approx(2 * 3.0 + 2 * 3.0), "four times the work, half of that"
    estimate.learn(cell("b", LARGE), 60.0)
    assert estimate.seconds_left() == pytest.approx(6.0), "the contender's own time counts more than the others'"


def test_cell_that_compiles_is_expected_to_take_long_before_one_has_ended() -> None:
    verified = [cell(name, measure="verify") for name in ("a", "b", "compiled", "compiled-too")]
    estimate = Estimate(verified, lambda each: 40 if each.library.startswith("compiled") else 1)
    estimate.learn(verified[0], 0.5)
    assert estimate.seconds_left() == pytest.approx(0.5 + 2 * 40 * 0.5)
    estimate.learn(verified[2], 18.0)
    assert estimate.seconds_left() == pytest.approx(0.5 + 18.0), "by others that compile, not by all"


def test_no_time_is_left_after_the_last_cell() -> None:
    estimate = Estimate([cell("a")])
    estimate.learn(cell("a"), 3.0)
    assert estimate.seconds_left() == 0


@pytest.mark.parametrize("trials", [1, 2, 5])
def test_estimate_at_half_time_is_right_within_a_factor_of_two(trials: int) -> None:
    """Contenders that differ twentyfold, a start of 2 s, and times that grow with the work; one trial is the worst."""
    right = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        protocol = PROTOCOL.model_copy(update={"trials": trials, "memory_trials": 1, "seed": seed})
        works = [
            Work(CASE.with_(neurons=neurons, time_steps=steps), f"lib{number}", "default")
            for number in range(8)
            for neurons in (256, 512, 1024, 2048)
            for steps in (100, 500)
        ]
        pace = {f"lib{number}": 10 ** random.uniform(-7, -5.7) for number in range(8)}
        plan = cells(works, protocol)
        lasting = [2 + pace[c.library] * c.case.updates * random.lognormal(0, 0.1) for c in plan]
        estimate, done, total = Estimate(plan), 0.0, sum(lasting)
        for ended, seconds in zip(plan, lasting, strict=True):
            estimate.learn(ended, seconds)
            done += seconds
            if done >= total / 2:
                break
        left = estimate.seconds_left()
        assert left is not None
        right += 0.5 <= left / (total - done) <= 2
    assert right >= 95


def test_format_of_durations() -> None:
    assert [format_duration(s) for s in (0.4, 59.4, 59.6, 90, 3590, 7800)] == [
        "0 s",
        "59 s",
        "1 min",
        "2 min",
        "1 h 0 min",
        "2 h 10 min",
    ]


def test_cell_may_end_without_a_start() -> None:
    """Of the cells of jobs only the records are seen."""
    pace = Pace([cell("a", trial=trial) for trial in range(3)])
    pace.end(cell("a", trial=0))
    assert pace.left == "about 0 s left"
    pace.start(cell("a", trial=1))
    pace.end(cell("a", trial=1))
    assert (pace.count, pace.left) == (2, "about 0 s left")
