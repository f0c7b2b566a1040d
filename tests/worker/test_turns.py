"""Tests of turns: two processes measure the same work by turns, and one continues if the other is gone."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from snnbench.plan.cell import Cell
from snnbench.recording.record import Record
from snnbench.run.executor import together
from snnbench.run.known_outcomes import KnownOutcomes
from snnbench.run.runner import Lane, Task
from snnbench.run.setup import RunContext, Setup
from snnbench.worker import contention
from snnbench.worker.timed_phase import TimedPhase
from snnbench.worker.turns import MESSAGE, Turns
from tests.bench import SMALL, Bench, bench
from tests.fakes import CASE, CORRECT, altered

__all__ = ["bench"]

Ends = tuple[Turns, Turns]
LOGGED = """
right_forward = right.forward

def forward(x):
    with open({log!r}, "a") as file:
        print({name!r}, file=file)
    return right_forward(x)

return Network(forward, right.backward)
"""


@pytest.fixture
def ends() -> Iterator[Callable[..., Ends]]:
    """A function that makes two workers' ends; the fixture closes them."""
    opened: list[int] = []

    def made(patience_s: float = 10.0) -> Ends:
        to_second, to_first = os.pipe(), os.pipe()
        opened.extend((*to_second, *to_first))
        cpu = iter(range(1, 1000))
        first = Turns(to_first[0], to_second[1], patience_s, cpu=lambda: float(next(cpu)))
        return first, Turns(to_second[0], to_first[1], patience_s, cpu=lambda: 0.5)

    yield made
    for descriptor in opened:
        os.close(descriptor)


def run(turns: Turns, name: str, steps: list[int], events: list[str], waits: bool) -> None:
    """Work, and hand over after each piece of work."""
    if waits:
        turns.wait()
    for step in steps:
        events.append(f"{name}{step}")
        turns.pass_on(step)


def test_each_worker_works_while_the_other_waits(ends: Callable[..., Ends]) -> None:
    first, second = ends()
    events: list[str] = []
    other = threading.Thread(target=run, args=(second, "b", [1, 1, 2, 2], events, True))
    other.start()
    for number, step in enumerate([1, 1, 2, 2]):
        events.append(f"a{step}")
        if number < 3:
            first.pass_on(step)
    os.write(first._writer, MESSAGE.pack(9.0, 9))
    other.join(0.5)
    assert events == ["a1", "b1", "a1", "b1", "a2", "b2", "a2", "b2"]
    assert (second.partner_s, first.partner_s, first.taken) == (9.0, 0.5, 3)
    os.write(first._writer, MESSAGE.pack(9.0, 9))
    other.join(5)


def test_worker_behind_gets_turns_until_it_catches_up(ends: Callable[..., Ends]) -> None:
    first, second = ends()
    events: list[str] = []
    other = threading.Thread(target=run, args=(second, "b", [1, 1, 1, 2], events, True))
    other.start()
    first.pass_on(2)
    events.append("a2")
    assert events == ["b1", "b1", "b1", "b2", "a2"]
    os.write(first._writer, MESSAGE.pack(0.0, 2))
    other.join(5)


def test_worker_continues_alone_if_the_other_is_gone() -> None:
    read, write = os.pipe()
    back, forth = os.pipe()
    turns = Turns(read, forth, 10.0)
    os.close(write)
    started = time.monotonic()
    turns.pass_on(1)
    assert turns.alone and time.monotonic() - started < 5
    os.close(back)
    turns.pass_on(2)  # no reader is left
    deaf = Turns(read, forth, 10.0)
    deaf.pass_on(1)
    assert deaf.alone
    os.close(read)
    os.close(forth)


def test_patience_is_shared_by_all_waits(ends: Callable[..., Ends]) -> None:
    first, _ = ends(patience_s=0.2)
    started = time.monotonic()
    first.pass_on(1)
    assert first.alone and 0.15 < time.monotonic() - started < 5


def test_only_both_sides_of_a_time_run_together() -> None:
    def cell(side: str, trial: int = 0, measure: str = "time", library: str = "a") -> Cell:
        return Cell(CASE, library, "default", trial, measure, side)  # type: ignore[arg-type]

    plan = [
        *(cell("base"), cell("new")),
        *(cell("new", 1), cell("base", 1)),
        *(cell("base", 0, "memory"), cell("new", 0, "memory")),
        cell("base", 2),  # the other side's record exists
        *(cell("base", 3), cell("new", 3)),
        *(cell("base", 4), cell("base", 4, library="b"), cell("new", 4, library="b")),
        cell("", 5),
        cell("", 5),
    ]
    assert [len(group) for group in together(plan)] == [2, 2, 1, 1, 1, 2, 1, 2, 1, 1]
    assert [cell for group in together(plan) for cell in group] == plan


def pair(bench: Bench, base: str, new: str, timeout_s: float = 60.0) -> tuple[Record, Record]:
    """The records of both sides."""
    setups = {}
    for side, source in (("base", base), ("new", new)):
        folder = bench.folder / side
        folder.mkdir()
        own = Bench(folder)
        own.add("a", source)
        setups[side] = Setup(own.adapters, own.interpreters)
    changes = {"timeout_seconds": timeout_s, "repetitions": 6, "phases": ("inference",)}
    run = RunContext(setups, bench.protocol.model_copy(update=changes), "a laptop", 1 << 40)
    tasks = [Task(Cell(SMALL, "a", "default", 0, "time", side), side) for side in ("base", "new")]
    first, second = Lane(run, KnownOutcomes()).measure(tasks)
    assert (first.side, second.side) == ("base", "new")
    return first, second


def logged(path: Path, name: str, more: str = "") -> str:
    """A fake that logs its name for every pass."""
    return altered(LOGGED.format(log=str(path), name=name) + more)


@pytest.mark.quiet
def test_repetitions_of_two_processes_alternate(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "passes"
    base, new = pair(bench, logged(log, "b"), logged(log, "n"))
    assert base.status == new.status == "measured", (base, new)
    names = "".join(log.read_text().split())
    runs = [len(run) for run in names.replace("bn", "b n").replace("nb", "n b").split()]
    # One repetition each by turns. After the last turn the first goes on to its end, then the second.
    assert len(runs) >= 2 * 7 and (base.settings["turns"], new.settings["turns"]) == (7, 7)
    assert len(base.phases["inference"]["repetitions_ns"]) == 6
    for side in (base, new):
        assert contention.others_cpus(side.phases) <= 0.5, "the other side's work is not contention"


@pytest.mark.parametrize("fault", ["os._exit(3)", "raise RuntimeError('no more')"])
def test_failing_side_leaves_the_other_its_time(bench: Bench, fault: str) -> None:
    broken = altered(
        f"""
import os
calls = []
right_forward = right.forward

def forward(x):
    calls.append(x)
    if len(calls) > 6:
        {fault}
    return right_forward(x)

return Network(forward, right.backward)
"""
    )
    base, new = pair(bench, CORRECT, broken)
    assert (base.status, new.outcome.kind) == ("measured", "crash"), (base, new)


@pytest.mark.quiet
def test_hanging_side_leaves_the_other_its_time(bench: Bench) -> None:
    hanging = altered(
        """
import time
calls = []
right_forward = right.forward

def forward(x):
    calls.append(x)
    if len(calls) > 6:
        time.sleep(1000)
    return right_forward(x)

return Network(forward, right.backward)
"""
    )
    base, new = pair(bench, CORRECT, hanging, timeout_s=4.0)
    assert (base.status, new.outcome.kind) == ("measured", "timeout"), (base, new)


def test_side_that_cannot_run_leaves_the_other_its_time(bench: Bench) -> None:
    base, new = pair(bench, CORRECT, CORRECT + "\nimport nothing_of_this_name\n")
    assert (base.status, new.status) == ("measured", "failed")


def test_phase_without_partner_counts_contention_to_its_end() -> None:
    phase = object.__new__(TimedPhase)
    turns, phase._ended = Turns(0, 0, 1.0), contention.usage()
    turns.alone = True
    phase._turns = turns
    phase._turn()
    assert phase._ended is None
