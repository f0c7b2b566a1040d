"""Tests of probes: fixed work that a process times beside its cell."""

from collections.abc import Callable
from typing import Any

import pytest

from snnbench.backends.numpy import Backend
from snnbench.cases.case import Case
from snnbench.measures.probes import worker as module
from snnbench.measures.probes.harness import complaints
from snnbench.measures.probes.worker import CALLS_IN_A_ROW, REPETITIONS, Probes
from snnbench.worker.measure import Work
from tests.fakes import CASE, request
from tests.recordings import record


class Session:
    """A session that counts its waits."""

    def __init__(self) -> None:
        self.waited = 0

    def synchronise(self, outputs: Any) -> None:
        """Count a wait; no work outlasts its call."""
        self.waited += 1

    def mark(self) -> None:
        """Do nothing: the session has no clock."""

    def elapsed_ns(self, start: Any, end: Any) -> int:
        """Never called."""
        raise NotImplementedError


class Card:
    """A backend that notes its calls by name."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.sides: list[int] = []

    def compilations(self) -> int:
        """The number of compilations: 0."""
        return 0

    def peaks(
        self, entering: Any, cotangent: Any, weight: Any, copied_bytes: int, rows: int | None = None
    ) -> dict[str, Any]:
        """Passes that note one call each."""
        self.sides += [rows or len(entering), copied_bytes]
        return {name: lambda name=name: self.calls.append(name) for name in ("current", "copy", "call")}


def probes(backend: Any, case: Case = CASE, settle: Callable[[], None] = lambda: None) -> Probes:
    """The probes of a process."""
    nothing: Any = None
    session: Any = Session()
    return Probes(Work(request("time", case), backend, nothing, nothing, nothing, session, settle))


def test_each_look_times_every_probe() -> None:
    settled: list[int] = []
    looked = probes(Backend(CASE), settle=lambda: settled.append(1))
    looked.begin()
    looked.end()
    timings = looked.of_record()["probes"]
    assert list(timings) == ["interpreter", "calls", "copy", "product"]
    for probe in timings.values():
        assert [len(look) for look in probe["looks_ns"]] == [REPETITIONS, REPETITIONS]
        assert all(type(ns) is int and ns > 0 for look in probe["looks_ns"] for ns in look)
    assert len(settled) == 2
    assert looked.settings({}).keys() == {"probes_ms"} and looked.settings({})["probes_ms"] >= 1


def test_gpu_has_larger_probes_a_launch_probe_and_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.clocks, "mhz", lambda: {"sm": 1980})
    backend = Card()
    looked = probes(backend, CASE.with_(device="cuda"))
    looked.look()
    assert list(looked.of_record()["probes"]) == ["interpreter", "calls", "copy", "product", "launch"]
    first = ["call", "copy", "current", "call"]
    timed = ["call"] * CALLS_IN_A_ROW * REPETITIONS + ["copy"] * REPETITIONS + ["current"] * REPETITIONS
    assert backend.calls == first + timed + ["call"] * REPETITIONS
    assert backend.sides == [2048, 64 << 20]
    looked.look()
    assert looked.settings({})["clocks_mhz"] == [{"sm": 1980}, {"sm": 1980}]
    assert len(backend.calls) == len(first) + 2 * (len(timed) + REPETITIONS)  # no first call in the second look


def test_every_probe_needs_two_looks() -> None:
    sound = {name: {"looks_ns": [[5, 6], [7, 8]]} for name in ("interpreter", "calls", "copy", "product")}
    assert list(complaints(record("a", probes=sound), 6)) == []
    assert list(complaints(record("a", probes=sound | {"launch": {"looks_ns": [[1], [1]]}}), 6)) == []
    assert list(complaints(record("a"), 6)) == ["no probe interpreter or calls or copy or product"]
    once = sound | {"copy": {"looks_ns": [[5, 6]]}}
    assert list(complaints(record("a", probes=once), 6)) == ["probe copy was looked at 1 times, not 2"]
    assert list(complaints(record("a"), 5)) == [], "schema 5 had none"
