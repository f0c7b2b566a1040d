"""Tests of energy, with counters whose truth is known: no machine here has one that may be read."""

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from snnbench.adapter.loading import load
from snnbench.adapter.reading import read
from snnbench.backends.numpy import Backend
from snnbench.measures.energy import worker as energy
from snnbench.measures.energy.harness import idle_watts, net_joules
from snnbench.measures.energy.worker import Counter, of_packages
from snnbench.worker import clocks
from snnbench.worker.measurement import Measurement
from snnbench.worker.messages import Reply
from snnbench.worker.timing import Phase
from snnbench.workloads.linear_lif import builder
from tests.fakes import CASE, CORRECT, PHASES, request, write

IDLE_W, WORK_J, PASS_NS = 20.0, 0.03, 2_000_000
"""The machine's idle power, the energy of a pass beyond it, and the time of a pass."""


class Machine:
    """A clock and a counter that only work and sleep move. The counter advances in steps of `step_uj`."""

    def __init__(self, step_uj: int = 1) -> None:
        self.now_ns, self.joules, self.step_uj = 0, 0.0, step_uj

    def spend(self, ns: int, joules: float = 0.0) -> None:
        self.now_ns += ns
        self.joules += IDLE_W * ns / 1e9 + joules

    def read_uj(self) -> int:
        return int(self.joules * 1e6) // self.step_uj * self.step_uj

    def phase(self) -> Phase:
        """A pass that takes PASS_NS and WORK_J."""
        nothing: Any = lambda *_: None  # noqa: E731
        return Phase(lambda _: self.spend(PASS_NS, WORK_J), nothing, lambda: 0, nothing, nothing)

    def measured(self, pass_ns: float) -> dict[str, Any]:
        """The energy of the pass, as a record holds it."""
        counter = Counter("fake", self.read_uj)
        done = energy.measure(
            self.phase(), pass_ns, counter, clock=lambda: self.now_ns, sleep=lambda s: self.spend(int(s * 1e9))
        )
        return {name: getattr(done, name) for name in done.__slots__}


@pytest.mark.parametrize("pass_ns", [PASS_NS, 10 * PASS_NS, PASS_NS / 7], ids=["right", "slower", "faster"])
@pytest.mark.parametrize("step_uj", [1, 61, 100_000])
def test_energy_of_a_pass_is_within_a_percent_of_the_truth(pass_ns: float, step_uj: int) -> None:
    """Whatever the expected time of a pass is: it decides only how many passes run at once."""
    measured = Machine(step_uj).measured(pass_ns)
    assert net_joules(measured) == pytest.approx(WORK_J, rel=0.01)
    assert idle_watts(measured) == pytest.approx(IDLE_W, rel=0.01)
    assert measured["wall_ns"] >= energy.LEAST_NS


def zone(folder: Path, number: str, name: str, now_uj: int, range_uj: int = 1000) -> Path:
    """A zone of /sys/class/powercap."""
    path = folder / f"intel-rapl:{number}"
    path.mkdir()
    for file, text in (("name", name), ("energy_uj", now_uj), ("max_energy_range_uj", range_uj)):
        (path / file).write_text(f"{text}\n")
    return path / "energy_uj"


def test_packages_add_up_and_begin_again_at_0(tmp_path: Path) -> None:
    first, second = zone(tmp_path, "0", "package-0", 900), zone(tmp_path, "1", "package-1", 10)
    zone(tmp_path, "0:0", "core", 5)
    zone(tmp_path, "2", "psys", 7)
    counter = of_packages(tmp_path)
    assert counter and counter.name == "rapl" and counter.read_uj() == 0
    first.write_text("950\n")
    assert counter.read_uj() == 50
    first.write_text("100\n")  # it went through 1000
    second.write_text("30\n")
    assert counter.read_uj() == 50 + 150 + 20


def test_machine_without_a_readable_counter_has_none(tmp_path: Path) -> None:
    assert of_packages(tmp_path) is None
    zone(tmp_path, "0", "package-0", 1).unlink()  # as if only root may read it
    assert of_packages(tmp_path) is None


@pytest.mark.parametrize(("status", "name"), [(0, "nvml"), (3, None)])
def test_card_counts_millijoules(monkeypatch: pytest.MonkeyPatch, status: int, name: str | None) -> None:
    def total(handle: Any, pointer: Any) -> int:
        ctypes.cast(pointer, ctypes.POINTER(ctypes.c_ulonglong))[0] = 7
        return status

    library = SimpleNamespace(nvmlDeviceGetTotalEnergyConsumption=total)
    monkeypatch.setattr(clocks, "opened", lambda: (library, ctypes.c_void_p()))
    counter = energy.counter("cuda")
    assert (counter and counter.name) == name
    assert counter is None or counter.read_uj() == 7000


def test_card_without_the_function_has_no_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "opened", lambda: (SimpleNamespace(), ctypes.c_void_p()))
    assert energy.counter("cuda:0") is None


def reply(tmp_path: Path, wanted: bool) -> Reply:
    """The reply to a request to time a case in NumPy, with or without energy."""
    path = write(tmp_path, CORRECT)
    module, variant = load(path), next(iter(read(path).variants.values()))
    timing = request("time", CASE, phases=PHASES, repetitions=3, max_phase_ns=10**8, further=("energy",) * wanted)
    answer = Reply()
    Measurement(timing, Backend(CASE), builder(module), lambda *_: None, variant).run(answer)
    return answer


def test_energy_is_in_the_reply_if_it_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(energy, "counter", lambda device: Counter("fake", lambda: next(counts)))
    monkeypatch.setattr(energy, "IDLE_S", 0.01)
    monkeypatch.setattr(energy, "LEAST_NS", 10_000_000)
    measured = reply(tmp_path, True)
    assert {name for name, phase in measured.phases.items() if "energy" in phase} == {*PHASES} - {"backward"}
    assert measured.settings["energy"] == "fake"
    without = reply(tmp_path, False)
    assert not any("energy" in phase for phase in without.phases.values()) and "energy" not in without.settings


def test_counter_that_fails_takes_no_time_from_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise OSError("the driver is gone")

    monkeypatch.setattr(energy, "counter", lambda device: Counter("nvml", fail))
    measured = reply(tmp_path, True)
    assert measured.outcome and measured.outcome.verdict == "exact" and {*measured.phases} == {*PHASES}
    assert measured.settings["energy"].startswith("not measured")


def test_reply_says_that_nothing_counts_energy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "counter", lambda device: None)
    measured = reply(tmp_path, True)
    assert measured.settings["energy"] == "not measured: no counter of energy can be read"
    assert measured.phases and not any("energy" in phase for phase in measured.phases.values())
