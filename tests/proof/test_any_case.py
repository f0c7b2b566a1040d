"""Tests that no setting accuses a right program: cases from users' reports, and cases from the whole range."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snnbench.cases.case import Case
from snnbench.proof import provable
from snnbench.proof.spotcheck import SpotCheck
from snnbench.proof.tolerance import out_of_window
from snnbench.workloads.linear_lif import Problem
from tests.drawn import ALL_NS, drawn, judge, table
from tests.fakes import CASE, LIF, profile
from tests.programs import FAULTS, Program

FAR = {"threshold": 5.0, "reset": "subtract", "detach_reset": False}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "changes",
    [
        {"slope": 25.0},
        {"slope": 100.0, "reset": "zero", "detach_reset": True},
        {"beta": 0.98, **FAR},
        {"beta": 1.0, **FAR},
    ],
    ids=str,
)
def test_right_programs_are_accused_in_no_users_setting(changes: dict[str, Any], dtype: Any) -> None:
    small = {"time_steps": 120, "batch": 4, "neurons": 24}
    verdicts = judge(CASE.with_(**small, dtype=dtype, **changes), FAULTS if dtype == "float32" else ())
    assert not verdicts.accused and not verdicts.missed_faults
    if dtype == "float32":
        assert not verdicts.hindrance and not verdicts.late and len(verdicts.found_faults) >= len(FAULTS) - 1


@pytest.mark.parametrize("seed", range(12))
def test_right_programs_are_accused_in_no_drawn_case(seed: int) -> None:
    """`python -m tests.drawn` judges thousands."""
    with np.errstate(all="ignore"):
        verdicts = judge(drawn(seed, time_steps=min(200, drawn(seed).time_steps)), FAULTS[seed % len(FAULTS) :][:1])
    assert not verdicts.accused and not verdicts.missed_faults
    assert len(list(table([verdicts]))) > 10


@pytest.mark.parametrize("seed", range(8))
def test_right_programs_are_accused_in_no_drawn_case_whose_gradient_is_cut(seed: int) -> None:
    fields = {name: value for name, value in drawn(seed).as_dict().items() if name in CASE.names()}
    case = CASE.with_(
        **fields | {"workload": "linear_lif", "time_steps": 120, "chunk_steps": 24, "carried_gradient": False}
    )
    with np.errstate(all="ignore"):
        verdicts = judge(case, FAULTS[seed % len(FAULTS) :][:1])
    assert not verdicts.accused and not verdicts.missed_faults


def test_layer_of_few_inputs_rounds_a_potential_in_the_same_direction_at_each_step() -> None:
    case = drawn(101030)
    assert (case.fan_in, case.beta, case.reset) == (3, 1.0, "none") and case.time_steps > 800
    assert not judge(case, ()).accused


@pytest.mark.parametrize(
    ("case", "word", "change"),
    [
        (CASE.with_(threshold=100.0), "silent", "threshold"),
        (CASE.with_(threshold=10.0), "silent", "threshold"),
        (CASE.with_(time_steps=1, batch=1, neurons=1), "", "neurons"),
        (CASE.with_(slope=200.0, surrogate="triangle", time_steps=2, batch=1, neurons=2), "gradient is zero", "slope"),
        (CASE.with_(reset="zero", slope=0.1, threshold=3.0, beta=1.0, time_steps=500), "gradient", ""),
        (LIF.with_(dtype="float16", slope=200.0, surrogate="exponential", time_steps=400), "gradient", "dtype"),
    ],
    ids=str,
)
def test_case_that_proves_nothing_is_found_before_a_library_runs(case: Case, word: str, change: str) -> None:
    reason = provable.hindrance(case)
    assert reason and word in reason
    name, _, value = reason.rpartition("; case.")[2].partition(" = ")
    assert change in name
    if name:
        assert not provable.hindrance(case.with_(**{name: type(getattr(case, name))(value.split()[0])}))


@pytest.mark.parametrize(("rate", "threshold"), [(0.0, 0.5), (1.0, 2.0)])
def test_threshold_of_a_silent_case_is_halved_and_of_a_busy_one_doubled(rate: float, threshold: float) -> None:
    assert next(provable._changes(CASE, out_of_window(rate))) == ("threshold", threshold)


def test_usual_case_proves_something() -> None:
    assert not provable.hindrance(CASE) and not provable.hindrance(LIF)


@pytest.mark.parametrize(("dtype", "factor"), [("float16", 1.02), ("bfloat16", 1.04)])
def test_gradient_in_16_bits_is_held_to_the_recurrence(dtype: Any, factor: float) -> None:
    """16 roundoffs, 6 % in bfloat16, would hide it."""
    small: dict[str, Any] = {"time_steps": 25, "batch": 8, "neurons": 64, "beta": 0.5, **profile("zero")}
    problem = Problem(CASE.with_(dtype=dtype, **small))
    right = Program()(problem, 0)
    check = SpotCheck(problem, 0, budget_ns=ALL_NS)
    assert check.check(right).message == ""
    assert "gradient of input is off by" in check.check(replace(right, input=right.input * factor)).message
