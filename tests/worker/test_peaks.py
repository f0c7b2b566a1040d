"""Tests of peaks, on a backend with products of a given duration."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from snnbench.cases.case import Case
from snnbench.worker import floor
from snnbench.worker.measure import Work
from snnbench.worker.peaks import (
    LARGEST_COPY_BYTES,
    LOOK_NS,
    ONE_THREAD_NS,
    REPETITION_NS,
    REPETITIONS,
    SECOND_LOOKS,
    SECOND_LOOKS_NS,
    Peaks,
)
from snnbench.workloads import linear_lif
from tests.fakes import CASE, PHASES, request

MS = 1_000_000
PRODUCTS = ("current", "weight_gradient", "input_gradient")


class Machine:
    """A backend, a session and a clock in one: a call takes `pass_ns`, and the first one `first_ns` more."""

    def on_one_thread(self) -> AbstractContextManager[None] | None:
        """It has one thread."""
        return None

    def __init__(self, pass_ns: int, first_ns: int = 0, operands_ns: int = 0, compiles: bool = False) -> None:
        self.pass_ns, self.first_ns, self.operands_ns, self.compiles = pass_ns, first_ns, operands_ns, compiles
        self.now = 0
        self.called: list[str] = []
        self.seen: list[Any] = []
        self.copied_bytes = 0

    def clock(self) -> int:
        return self.now

    def peaks(self, *given: Any) -> dict[str, Callable[[], Any]]:
        *matrices, self.copied_bytes, _ = given
        self.seen += [weakref.ref(matrix) for matrix in matrices]
        self.now += self.operands_ns

        def run(name: str) -> Any:
            self.now += self.pass_ns + (0 if name in self.called else self.first_ns)
            self.called.append(name)
            return matrices

        return {name: lambda name=name: run(name) for name in (*PRODUCTS, "copy", "call")}  # type: ignore[misc]

    def synchronise(self, outputs: Any) -> None:
        """Nothing is under way."""

    def compilations(self) -> int:
        return len(set(self.called)) if self.compiles else 0

    def mark(self) -> Any:
        return None

    def elapsed_ns(self, start: Any, end: Any) -> int:
        raise ValueError("no device clock")


def at(
    machine: Machine,
    phases: tuple[str, ...] = ("inference",),
    case: Case = CASE,
    settle: Callable[[], None] = lambda: None,
    busy_ns: int = 0,
) -> Peaks:
    """The peaks of this machine."""
    backend: Any = machine
    nothing: Any = None
    work = Work(request("time", case), backend, nothing, nothing, nothing, backend, settle, busy_ns)
    return Peaks(work, phases, machine.clock)


def test_look_keeps_every_repetition_and_the_first_call() -> None:
    peaks = at(Machine(pass_ns=100_000, first_ns=7 * MS))
    peaks.look()
    passes = REPETITION_NS // 100_000
    for name, work in (
        ("current", linear_lif.product_flops(CASE, "current")),
        ("copy", 2 * peaks.copied_bytes),
        ("call", 2),
    ):
        assert peaks.as_dict()[name] == {
            "work": work,
            "passes": passes,
            "first_call_ns": 100_000 + 7 * MS,
            "repetitions_ns": [passes * 100_000] * REPETITIONS,
        }
    peaks.look()
    assert peaks.by_name["current"].repetitions_ns == [passes * 100_000] * 2 * REPETITIONS
    assert peaks.by_name["current"].first_call_ns == 100_000 + 7 * MS


@pytest.mark.parametrize("compiles", [False, True])
def test_slow_product_is_called_once_in_a_look(compiles: bool) -> None:
    """Once more in the first look, if the first call compiled."""
    machine = Machine(pass_ns=LOOK_NS, compiles=compiles)
    peaks = at(machine)
    peaks.look()
    assert machine.called.count("current") == 1 + compiles
    assert (peaks.by_name["current"].passes, peaks.by_name["current"].repetitions_ns) == (1, [LOOK_NS])
    peaks.look()
    assert machine.called.count("current") == 2 + compiles
    assert peaks.by_name["current"].repetitions_ns == [LOOK_NS] * 2


@pytest.mark.parametrize("pass_ns", [REPETITION_NS, LOOK_NS // 4])
def test_look_ends_with_its_repetitions_or_its_time(pass_ns: int) -> None:
    peaks = at(Machine(pass_ns))
    peaks.look()
    expected = REPETITIONS if pass_ns == REPETITION_NS else 3  # and the first call, which is as long
    assert len(peaks.by_name["current"].repetitions_ns) == expected


def test_operands_are_freed_after_a_look() -> None:
    machine = Machine(pass_ns=MS)
    peaks = at(machine)
    peaks.look()
    assert len(machine.seen) == 3
    assert [one() for one in machine.seen] == [None] * 3, "without waiting for the garbage collector"


def test_looks_between_phases_take_at_most_a_tenth_of_the_time() -> None:
    machine = Machine(pass_ns=REPETITION_NS, operands_ns=6 * MS)
    peaks = at(machine)
    peaks.look()
    spent = peaks.spent_ns
    assert spent == machine.now, "operands included"
    count = len(machine.called)
    machine.now = 10 * spent - 1
    peaks.look_if_cheap()
    assert (len(machine.called), peaks.spent_ns) == (count, spent)
    machine.now = 10 * spent
    peaks.look_if_cheap()
    assert len(machine.called) > count and peaks.spent_ns > spent


@pytest.mark.parametrize(("doubts", "looks"), [(0, 1), (1, 2), (3, 4), (99, 1 + SECOND_LOOKS)])
def test_number_of_second_looks_at_a_doubtful_time_is_limited(doubts: int, looks: int) -> None:
    machine = Machine(pass_ns=LOOK_NS)
    peaks = at(machine)
    doubted = iter([False] * doubts)
    peaks.look_until(lambda: next(doubted, True))
    assert machine.called.count("current") == looks


def test_second_looks_are_limited_in_time() -> None:
    """At least one more look is taken, however long it takes."""
    for pass_ns, looks in ((SECOND_LOOKS_NS, 2), (SECOND_LOOKS_NS // 4, 3)):
        machine = Machine(pass_ns)
        at(machine).look_until(lambda: False)
        assert machine.called.count("current") == looks


@pytest.mark.parametrize(
    ("phases", "called"),
    [
        (("inference",), {"current", "copy", "call"}),
        (("backward",), {"weight_gradient", "input_gradient", "copy", "call"}),
        (PHASES, {*PRODUCTS, "copy", "call"}),
    ],
)
def test_only_needed_products_are_called(phases: tuple[str, ...], called: set[str]) -> None:
    machine = Machine(pass_ns=MS)
    peaks = at(machine, phases)
    peaks.look()
    assert set(machine.called) == set(peaks.by_name) == called


def test_copy_moves_the_smallest_phases_bytes_up_to_a_limit() -> None:
    small = at(Machine(MS), PHASES)
    small.look()
    assert small.copied_bytes == floor.least_bytes(CASE, "inference") // 2
    assert small.by_name["copy"].work == 2 * small.copied_bytes
    large = at(Machine(MS), PHASES, CASE.with_(neurons=16384, time_steps=500))
    assert large.copied_bytes == LARGEST_COPY_BYTES


def test_look_begins_on_a_busy_device() -> None:
    machine = Machine(pass_ns=MS, operands_ns=1000 * MS)
    peaks = at(machine, PHASES, busy_ns=50 * MS)
    peaks.look()
    first = next(iter(peaks.by_name))
    before_another = machine.called.index(next(name for name in machine.called if name != first))
    idle = Machine(pass_ns=MS)
    at(idle, PHASES).look()
    assert machine.called[:50] == [first] * 50
    assert before_another == 50 + idle.called.index(next(name for name in idle.called if name != first))


def test_every_peak_is_measured_on_a_settled_process() -> None:
    machine = Machine(pass_ns=MS)
    settled: list[int] = []
    peaks = at(machine, PHASES, settle=lambda: settled.append(len(machine.called)))
    peaks.look()
    assert len(settled) == len(peaks.by_name) and settled == sorted(settled) and settled[0] == 0


class Contended(Machine):
    """A machine on which threads wait for each other: a call on one thread takes a hundredth of the time."""

    def __init__(self, pass_ns: int) -> None:
        super().__init__(pass_ns)
        self.ran_alone: set[str] = set()

    @contextmanager
    def on_one_thread(self) -> Iterator[None]:
        self.pass_ns //= 100
        before = len(self.called)
        yield
        self.ran_alone |= set(self.called[before:])
        self.pass_ns *= 100


def test_doubtful_time_is_held_against_peaks_of_one_thread() -> None:
    """All threads are looked at first: a time above their floor costs no further look."""
    machine = Contended(pass_ns=10 * MS)
    peaks = at(machine)
    peaks.look_until(lambda: True)
    assert machine.ran_alone == set() and peaks.by_name["current"].fastest_ns == 10 * MS
    peaks.look_until(lambda: peaks.by_name["current"].fastest_ns < MS)
    assert machine.ran_alone == {"current", "copy", "call"}
    assert peaks.by_name["current"].fastest_ns == 10 * MS / 100


def test_long_products_are_not_repeated_on_one_thread() -> None:
    machine = Contended(pass_ns=ONE_THREAD_NS + 100)
    at(machine).look_until(lambda: False)
    assert machine.ran_alone == set()
