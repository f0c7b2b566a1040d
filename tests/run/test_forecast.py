"""Tests of forecasts from recordings made by hand: memory, time and the outcome of each contender in each case."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from snnbench.adapter import reading
from snnbench.adapter.contender import Work
from snnbench.adapter.declaration import Adapter
from snnbench.cases.case import Case
from snnbench.plan.config import Protocol
from snnbench.recording.reading import Recording
from snnbench.report.text import forecast_table
from snnbench.report.text.markdown import markdown
from snnbench.run.forecast import Forecast, Limits, arrays_bytes, forecast
from snnbench.units import GIB, MIB
from tests.fakes import CASE, CORRECT, LIF, write
from tests.recordings import recording, timed, weighed

MODEL = "a laptop"
BASE = CASE.with_(neurons=64, batch=4, time_steps=10, layers=1)
PROTOCOL = Protocol(
    phases=("train",),
    trials=3,
    memory_trials=1,
    warmup_passes=2,
    repetitions=3,
    min_repetition_ms=1.0,
    max_phase_seconds=100.0,
    timeout_seconds=1000.0,
    seed=0,
)
LIMITS = Limits(4 * GIB, None, False, 2)
START_BYTES = 100 * MIB - MIB - arrays_bytes(BASE, 4)
"""The process in `weighed`, without the arrays of BASE."""


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Adapter]:
    return {name: reading.read(write(tmp_path, CORRECT, name)) for name in ("a", "b")}


def planned(
    adapters: dict[str, Adapter], cases: Sequence[Case], *recordings: Recording, libraries: Sequence[str] = ("a",)
) -> list[Forecast]:
    works = [Work(case, library, "default") for case in cases for library in libraries]
    return forecast(works, PROTOCOL, adapters, recordings, MODEL, LIMITS)


def recorded(*steps: int) -> Recording:
    """A contender whose peak is 1 MiB a time step; a cell takes 2 s."""
    cells = []
    for size in steps:
        case = BASE.with_(time_steps=size)
        cells.append(replace(timed("a", case=case, train=1.0), wall_s=2.0))
        cells.append(replace(weighed("a", case=case, host_mib=size), wall_s=1.0))
    return recording(*cells)


def test_arrays_are_static_numbers_and_the_cotangent() -> None:
    assert arrays_bytes(BASE, 4) == 4 * (64 * 64 + 2 * 10 * 4 * 64)
    assert arrays_bytes(LIF, 2) == 2 * 2 * LIF.time_steps * LIF.batch * LIF.neurons  # type: ignore[attr-defined]


def test_recorded_cells_take_their_recorded_time(adapters: dict[str, Adapter]) -> None:
    (only,) = planned(adapters, [BASE], recorded(10))
    assert (only.expected, only.cells, only.seconds) == ("ok", 4, pytest.approx(3 * 2 + 1))
    assert only.memory_bytes == pytest.approx(START_BYTES + 2 * arrays_bytes(BASE, 4) + 10 * MIB)
    assert not only.is_lower_bound


def test_peak_of_the_nearest_case_grows_with_the_least_bytes(adapters: dict[str, Adapter]) -> None:
    case = BASE.with_(time_steps=400)
    (only,) = planned(adapters, [case], recorded(10, 200))
    arrays = 2 * arrays_bytes(case, 4)
    assert only.memory_bytes - arrays == pytest.approx(400 * MIB + START_BYTES, rel=0.05)


def test_case_above_the_limit_does_not_fit(adapters: dict[str, Adapter]) -> None:
    cases = [BASE.with_(time_steps=size) for size in (100, 8000)]
    assert [one.expected for one in planned(adapters, cases, recorded(10))] == ["ok", "oom-host"]


def test_limit_of_the_protocol_and_free_memory_count() -> None:
    facts = {
        "memory": {"total_bytes": 8 * GIB, "limit_bytes": 6 * GIB},
        "gpus": [{"memory_bytes": 24 * GIB}, {"memory_bytes": 16 * GIB}],
        "cpu": {"usable_cpus": 4},
    }
    assert Limits.of(PROTOCOL, facts, 7 * GIB, True) == Limits(6 * GIB, 16 * GIB, True, 4)
    assert Limits.of(PROTOCOL, facts, 5 * GIB, True).host_bytes == 5 * GIB
    own = PROTOCOL.model_copy(update={"memory_limit_gib": 2.0})
    assert Limits.of(own, facts, 5 * GIB, True).host_bytes == 2 * GIB


def test_cells_that_cannot_run_are_skipped_with_a_reason(adapters: dict[str, Adapter]) -> None:
    cases = [BASE.with_(device="cuda"), BASE.with_(threads=8)]
    skipped = planned(adapters, cases, recorded(10))
    assert [one.expected for one in skipped] == ["unavailable", "unavailable"]
    assert [one.reason for one in skipped] == ["no CUDA device on this machine", "8 threads on 2 CPUs"]
    assert {one.seconds for one in skipped} == {0.0}


def test_time_comes_from_this_machine_and_memory_from_any(adapters: dict[str, Adapter]) -> None:
    elsewhere = recorded(10)
    elsewhere.machine["model"] = "another laptop"
    (only,) = planned(adapters, [BASE], elsewhere)
    assert only.seconds is None and not only.is_lower_bound


def test_time_on_a_card_may_come_from_another_card_but_not_from_a_cpu(adapters: dict[str, Adapter]) -> None:
    case, limits = BASE.with_(device="cuda"), replace(LIMITS, has_cuda=True)
    elsewhere = recording(replace(timed("a", case=case, train=1.0), wall_s=2.0))
    elsewhere.machine["model"] = "a machine with another card"
    works = [Work(case, "a", "default")]
    (known,) = forecast(works, PROTOCOL, adapters, [recorded(10), elsewhere], MODEL, limits)
    assert known.is_elsewhere and known.seconds == pytest.approx(4 * 2)
    assert "the time of 4 was recorded on another card" in forecast_table.summary([known])
    (unknown,) = forecast(works, PROTOCOL, adapters, [recorded(10)], MODEL, limits)
    assert unknown.seconds is None and not unknown.is_elsewhere


def test_table_and_summary(adapters: dict[str, Adapter]) -> None:
    cases = [BASE, BASE.with_(time_steps=8000), BASE.with_(threads=8)]
    text = markdown(forecast_table.report(planned(adapters, cases, recorded(10), libraries=("a", "b"))))
    lines = text.splitlines()
    assert "- does not fit: 8000 steps, 1 thread: a 4.44 GiB" in lines
    assert "| b | ok | 4 | >= 36 KiB | 7 s |" in lines, "as long as other contenders"
    assert lines[-1].startswith("24 cells, about ") and lines[-1].endswith(
        "; 4 of them do not fit; 8 of them are skipped"
    )


def test_race_has_its_first_trials_and_a_budget_says_how_many_cells_end(adapters: dict[str, Adapter]) -> None:
    protocol = PROTOCOL.model_copy(update={"until": "certain"})
    works = [Work(BASE, name, "default") for name in ("a", "b")]
    planned_race = forecast(works, protocol, adapters, [recorded(10)], MODEL, LIMITS)
    assert [one.cells for one in planned_race] == [1, 1]
    text = forecast_table.summary(planned_race, protocol.trials, 0.5 * sum(one.seconds or 0 for one in planned_race))
    assert "about 1 of them end within" in text
    assert text.endswith(f"a race: contenders that may lead have up to {protocol.trials} trials")
