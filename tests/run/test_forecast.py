"""Tests of forecasts from recordings made by hand: memory, time and the outcome of each contender in each case."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snnbench import workloads
from snnbench.adapter import reading
from snnbench.adapter.contender import Work
from snnbench.adapter.declaration import Adapter
from snnbench.cases.case import Case
from snnbench.plan.config import Protocol
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.run.forecast import Forecast, Limits, Plan
from snnbench.run.forecaster import arrays_bytes, forecast
from snnbench.units import GIB, MIB
from snnbench.workloads import lif
from tests.fakes import CASE, CORRECT, write
from tests.recordings import recording, timed, weighed

MODEL = "a laptop"
BASE = CASE.with_(neurons=64, batch=4, time_steps=10, layers=1)
SHARED = {name: value for name, value in BASE.as_dict().items() if name in lif.Case.names() and name != "workload"}
CURRENTS = lif.Case(**SHARED)
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
    adapters: dict[str, Adapter],
    cases: Sequence[Case],
    *recordings: Recording,
    protocol: Protocol = PROTOCOL,
    limits: Limits = LIMITS,
    libraries: Sequence[str] = ("a",),
) -> Plan:
    works = [Work(case, library, "default") for case in cases for library in libraries]
    return forecast("tiny", works, protocol, adapters, recordings, MODEL, limits)


def only(adapters: dict[str, Adapter], case: Case, *recordings: Recording, **options: Any) -> Forecast:
    (single,) = planned(adapters, [case], *recordings, **options).forecasts
    return single


def quadratic(*steps: int) -> Recording:
    """A contender whose passes grow with T^2 in time and in peak; a cell takes 2 s beside its passes.

    These are a first call, 3 repetitions of 2 passes, and 6 fresh passes.
    """
    cells = []
    for size in steps:
        case, ms = BASE.with_(time_steps=size), size**2
        cells.append(lasting(2.0 + 13 * ms / 1e3, timed("a", case=case, train=ms), [2 * ms] * 3))
        cells.append(weighed("a", case=case, host_mib=size**2))
    return recording(*cells)


def lasting(wall_s: float, cell: Record, repetitions_ms: Sequence[int], **fields: Any) -> Record:
    """The cell of a training phase with these repetitions and this length."""
    phase = cell.phases["train"] | {"repetitions_ns": [ms * 1_000_000 for ms in repetitions_ms], **fields}
    return replace(cell, phases={"train": phase}, wall_s=wall_s)


def test_arrays_are_static_numbers_and_the_cotangent() -> None:
    assert arrays_bytes(BASE, 4) == 4 * (64 * 64 + 2 * 10 * 4 * 64)
    assert arrays_bytes(CURRENTS, 2) == 2 * (2 * 10 * 4 * 64)
    assert workloads.of(CURRENTS).NAME == "lif"


def test_contender_that_grows_with_the_square_of_time(adapters: dict[str, Adapter]) -> None:
    """A pass of 40 steps takes 1600 ms: a first call, 2 warm-up passes, 3 repetitions, and one that repeats content."""
    case = BASE.with_(time_steps=40)
    predicted = only(adapters, case, quadratic(10, 20, 30))
    start = min(100 * MIB - MIB - arrays_bytes(BASE.with_(time_steps=size), 4) for size in (10, 20, 30))
    assert predicted.memory_bytes == pytest.approx(start + 2 * arrays_bytes(case, 4) + 1600 * MIB, rel=1e-3)
    assert predicted.passes["train"].value == pytest.approx(1600e6, rel=1e-3)
    timed_s, weighed_s = 2.0 + (1 + 2 + 3 + 1) * 1.6, 8 * 1.6
    assert predicted.seconds == pytest.approx(3 * timed_s + weighed_s, rel=0.01)
    assert (predicted.expected, predicted.cells) == ("ok", 4)
    assert predicted.peak is not None and predicted.peak.words == "T^2"


def test_recorded_cell_takes_its_recorded_time(adapters: dict[str, Adapter]) -> None:
    protocol = PROTOCOL.model_copy(update={"warmup_passes": 1, "memory_trials": 0, "trials": 1})
    cell = lasting(7.25, timed("a", case=BASE, train=200.0), [200] * 3, passes=1, warmup_ns=[200_000_000])
    assert only(adapters, BASE, recording(cell), protocol=protocol).seconds == pytest.approx(7.25)


def test_case_above_the_limit_does_not_fit(adapters: dict[str, Adapter]) -> None:
    cases = [BASE.with_(time_steps=size) for size in (40, 60, 70)]
    plan = planned(adapters, cases, quadratic(10, 20, 30))
    assert [one.expected for one in plan.forecasts] == ["ok", "ok", "oom-host"], "4900 MiB of 4096"
    assert plan.forecasts[-1].seconds == pytest.approx(4 * 2.0, rel=0.01), "such a cell starts a worker and ends"


def test_limit_of_the_protocol_and_free_memory_count() -> None:
    facts = {
        "memory": {"total_bytes": 8 * GIB, "limit_bytes": 6 * GIB},
        "gpus": [{"memory_bytes": 80 * GIB}, {"memory_bytes": None}, {"memory_bytes": 40 * GIB}],
        "cpu": {"usable_cpus": 2},
    }
    limited = PROTOCOL.model_copy(update={"memory_limit_gib": 1.0})
    assert Limits.of(limited, facts, 5 * GIB, True) == Limits(GIB, 40 * GIB, True, 2)
    assert Limits.of(PROTOCOL, facts, 5 * GIB, False).host_bytes == 5 * GIB
    assert Limits.of(PROTOCOL, facts, 7 * GIB, False).host_bytes == 6 * GIB
    assert Limits.of(PROTOCOL, facts | {"gpus": []}, GIB, False).device_bytes is None


def test_memory_of_a_card_is_compared_with_the_card(adapters: dict[str, Adapter]) -> None:
    case = BASE.with_(device="cuda")
    record = recording(weighed("a", case=case, host_mib=9000, device_mib=50))
    roomy, small = (Limits(GIB, mib * MIB, True, 2) for mib in (60, 40))
    predicted = only(adapters, case, record, limits=roomy)
    assert predicted.memory_bytes == 50 * MIB + arrays_bytes(case, 4) and predicted.expected == "ok"
    assert only(adapters, case, record, limits=small).expected == "oom-device"


def test_backward_phase_keeps_the_graphs_of_a_repetition(adapters: dict[str, Adapter]) -> None:
    """A repetition of 10 ms takes 5 passes of 2 ms, and each of the other 4 keeps 2 MiB."""
    protocol = PROTOCOL.model_copy(update={"phases": ("forward", "backward"), "min_repetition_ms": 10.0})
    cells = recording(timed("a", case=BASE, forward=1.0, backward=2.0), weighed("a", case=BASE, host_mib=6))
    predicted = only(adapters, BASE, cells, protocol=protocol)
    assert predicted.memory_bytes == START_BYTES + 2 * arrays_bytes(BASE, 4) + 6 * MIB + 4 * 2 * MIB


def test_contender_without_a_record_has_a_lower_bound(adapters: dict[str, Adapter]) -> None:
    cells = recording(timed("a", case=BASE, train=200.0), weighed("a", case=BASE))
    known, unknown = planned(adapters, [BASE], cells, libraries=("a", "b")).forecasts
    assert known.expected == "ok" and known.seconds is not None
    assert (unknown.expected, unknown.memory_bytes) == ("unknown", arrays_bytes(BASE, 4))
    assert unknown.peak is None and unknown.seconds is None and not unknown.passes


def test_arrays_alone_may_be_too_large(adapters: dict[str, Adapter]) -> None:
    predicted = only(adapters, BASE.with_(neurons=64_000))
    assert (predicted.expected, predicted.seconds) == ("oom-host", None)


def test_both_workloads_in_one_plan(adapters: dict[str, Adapter]) -> None:
    cells = [timed("a", case=case, train=ms) for case, ms in ((BASE, 3.0), (CURRENTS, 5.0))]
    peaks = [weighed("a", case=case, host_mib=mib) for case, mib in ((BASE, 6.0), (CURRENTS, 8.0))]
    twice = [BASE.with_(neurons=128), CURRENTS.with_(neurons=128)]
    linear, alone = planned(adapters, twice, recording(*cells, *peaks)).forecasts
    assert linear.passes["train"].value == pytest.approx(4 * 3e6), "products have N^2 terms"
    assert alone.passes["train"].value == pytest.approx(2 * 5e6), "neurons alone have N"
    assert alone.peak is not None and alone.peak.value == pytest.approx(16 * MIB)
    assert linear.peak is not None and 12 * MIB < linear.peak.value < 24 * MIB


def test_other_machine_gives_memory_only(adapters: dict[str, Adapter]) -> None:
    cells = [timed("a", case=BASE, train=200.0), weighed("a", case=BASE)]
    plan = planned(adapters, [BASE], recording(*cells, model="a server", name="theirs"))
    (predicted,) = plan.forecasts
    assert predicted.peak is not None and predicted.seconds is None and not predicted.passes
    assert (plan.recordings, plan.foreign) == ([], ["theirs"])


def test_works_that_cannot_run_here_are_skipped(adapters: dict[str, Adapter]) -> None:
    plan = planned(adapters, [BASE.with_(device="cuda"), BASE.with_(threads=3)])
    assert [one.expected for one in plan.forecasts] == ["unavailable"] * 2
    assert [one.reason for one in plan.forecasts] == ["no CUDA device on this machine", "3 threads on 2 CPUs"]
    assert plan.untimed_cells == 0 and plan.seconds == 0


@pytest.mark.parametrize("header", ['EXACT = ("zero",)', 'INFERENCE_ONLY = "no gradient"'])
def test_work_that_an_adapter_refuses_is_skipped(tmp_path: Path, header: str) -> None:
    picky = {"a": reading.read(write(tmp_path, f"{CORRECT}\n{header}\n", "a"))}
    refused = only(picky, BASE, quadratic(10, 20, 30))
    assert refused.expected == "unsupported" and refused.reason


def test_cell_beyond_the_timeout_ends_there(adapters: dict[str, Adapter]) -> None:
    protocol = PROTOCOL.model_copy(update={"timeout_seconds": 10.0})
    predicted = only(adapters, BASE.with_(time_steps=40), quadratic(10, 20, 30), protocol=protocol)
    assert (predicted.expected, predicted.seconds) == ("timeout", 4 * 10.0)


def test_rest_of_a_cell_grows_with_the_root_of_its_work(adapters: dict[str, Adapter]) -> None:
    protocol = PROTOCOL.model_copy(update={"phases": (), "trials": 2})
    cell = timed("a", case=BASE)
    for batch, seconds in ((4, 1.5), (16, 3.0), (1, 1.5)):
        predicted = only(adapters, BASE.with_(batch=batch), recording(cell), protocol=protocol)
        assert predicted.seconds == pytest.approx(2 * seconds), "never below the start of a worker"


def test_nothing_is_planned_from_nothing(adapters: dict[str, Adapter]) -> None:
    plan = planned(adapters, [BASE])
    assert (plan.cells, plan.untimed_cells, plan.seconds) == (4, 4, 0)
