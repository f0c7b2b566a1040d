"""Tests of a relay: two workers load at the same time, then measure one after the other."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from snnbench.adapter.contender import Work
from snnbench.cases.outcome import skipped
from snnbench.environments.interpreters import Interpreter
from snnbench.machine import cpus
from snnbench.plan.cell import Cell, cells
from snnbench.recording.reading import RECORDS
from snnbench.recording.record import Record
from snnbench.run import executor
from snnbench.run.known_outcomes import KnownOutcomes
from snnbench.run.runner import Lane, Task
from snnbench.run.setup import RunContext, Setup
from snnbench.worker.messages import Request
from snnbench.worker.relay import OPEN, Follower, Leader
from tests.bench import HERE, SMALL, Bench, bench
from tests.fakes import CASE, CORRECT, MEASURED, altered

__all__ = ["bench"]

NO_IMPORT = CORRECT + "\nimport nothing_of_this_name\n"
DYING = altered("import os\nos._exit(3)")
HANGING = altered("import time\ntime.sleep(60)")


REQUEST = Request(measure="time", case=CASE, variant="default")


def test_follower_waits_until_its_gate_opens() -> None:
    gate, ready = os.pipe(), os.pipe()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(Follower(gate[0], ready[1]).wait, REQUEST)
        assert Leader([ready[0]], 10).wait(REQUEST) == REQUEST
        time.sleep(0.2)
        assert waiting.running(), "the leader is ready, but has not ended"
        os.write(gate[1], OPEN.pack(7))
        assert waiting.result(5) == replace(REQUEST, enough_ns=7)
    for descriptor in (*gate, *ready):
        os.close(descriptor)


def test_follower_ends_once_the_harness_is_dead() -> None:
    gate, ready = os.pipe(), os.pipe()
    os.close(gate[1])
    with pytest.raises(SystemExit, match="the harness is gone"):
        Follower(gate[0], ready[1]).wait(REQUEST)
    for descriptor in (gate[0], *ready):
        os.close(descriptor)


def test_leader_waits_neither_for_ever_nor_for_the_dead() -> None:
    pipes = [os.pipe() for _ in range(3)]
    readers = [reader for reader, _ in pipes]
    started = time.monotonic()
    Leader(readers, patience_s=0.1).wait(REQUEST)
    assert 0.09 <= time.monotonic() - started < 5, "the patience is for all of them"
    for _, writer in pipes:
        os.close(writer)
    Leader(readers, patience_s=60).wait(REQUEST)
    assert time.monotonic() - started < 5
    for reader in readers:
        os.close(reader)


class Log:
    """A file in which workers note what they do, and when."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def source(self, name: str, load_s: float = 0.0) -> str:
        """A fake that notes "exam" and "works"."""
        event = f'"works" if {MEASURED} else "exam"'
        note = f'print(time.monotonic(), "{name}", {event}, file=open({str(self.path)!r}, "a"))'
        return f"import time\ntime.sleep({load_s})\n" + altered(f"import time\n{note}\nreturn right")

    def times(self, event: str) -> list[float]:
        """When it happened."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [float(line.split(" ", 1)[0]) for line in lines if line.endswith(event)]


def relay(bench: Bench, first: str, second: str, refused: bool = False, **changes: Any) -> tuple[Record, Record]:
    """The records of both; with `refused` the second's case becomes known to be refused meanwhile."""
    for name, source in (("a", first), ("b", second)):
        bench.add(name, source, bench.interpreters.get(((name, "default"), ()), HERE))
    run = RunContext(
        {"": Setup(bench.adapters, bench.interpreters)}, bench.protocol.model_copy(update=changes), "a laptop", 1 << 40
    )
    known = KnownOutcomes()
    tasks = [Task(Cell(SMALL, name, "default", 0, "time"), name) for name in "ab"]
    records = Lane(run, known).relay(tasks)
    early = next(records)
    if refused:
        known.learn(tasks[1].cell, skipped("unsupported", "not this case"))
    (late,) = records
    assert (early.library, late.library) == ("a", "b")
    return early, late


def test_both_take_the_exam_before_either_works(bench: Bench, tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    first, second = relay(bench, log.source("a"), log.source("b", load_s=0.5))
    assert first.status == second.status == "measured", (first, second)
    exams, a_works, b_works = log.times("exam"), log.times("a works"), log.times("b works")
    assert max(exams) <= min(a_works) <= max(a_works) <= min(b_works)
    assert first.wall_s and second.wall_s and first.wall_s > 0.5 > second.wall_s, "the load is counted once"


@pytest.mark.parametrize("source", [NO_IMPORT, DYING, HANGING])
def test_failing_first_leaves_the_second_its_time(bench: Bench, source: str) -> None:
    first, second = relay(bench, source, CORRECT, timeout_seconds=4.0)
    assert (first.status, second.status) == ("failed", "measured"), (first, second)


@pytest.mark.parametrize("source", [NO_IMPORT, DYING, HANGING])
def test_failing_second_leaves_the_first_its_time(bench: Bench, source: str) -> None:
    first, second = relay(bench, CORRECT, source, timeout_seconds=4.0)
    assert (first.status, second.status) == ("measured", "failed"), (first, second)


@pytest.mark.parametrize("missing", ["a", "b"])
def test_missing_interpreter_leaves_the_other_its_time(bench: Bench, missing: str) -> None:
    bench.interpreters[(missing, "default"), ()] = Interpreter(bench.folder / "python", "gone", {})
    kinds = [record.outcome.kind for record in relay(bench, CORRECT, CORRECT)]
    assert kinds == [None if name != missing else "environment" for name in "ab"]


def test_outcome_that_became_known_ends_the_second(bench: Bench, tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    _, second = relay(bench, CORRECT, log.source("b"), refused=True)
    assert second.outcome == skipped("unsupported", "not this case")
    assert log.times("b exam") and not log.times("b works")


def test_record_of_the_first_is_written_before_the_second_works(bench: Bench, tmp_path: Path) -> None:
    counting = f"""
records = {str(bench.recording / RECORDS)!r}
if {MEASURED}:
    with open({str(tmp_path / "log")!r}, "a") as file, open(records) as recorded:
        print(len(recorded.readlines()), file=file)
return right
"""
    bench.add("a")
    bench.add("b", altered(counting))
    plan = cells([Work(SMALL, name, "default") for name in "ab"], bench.protocol.model_copy(update={"trials": 1}))
    plan.sort(key=lambda cell: cell.library)
    first, second = bench.run(plan)
    assert first.status == second.status == "measured", (first, second)
    assert set((tmp_path / "log").read_text().split()) == {"1"}
    assert bench.watcher.started == plan


def test_large_cell_has_the_memory_for_itself(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path / "log")
    for name in "ab":
        bench.add(name, log.source(name))
    plan = [Cell(SMALL, name, "default", 0, "time") for name in "ab"]
    monkeypatch.setattr(executor, "RELAYED_TIMES", 1 << 40)
    assert [record.status for record in bench.run(plan)] == ["measured"] * 2
    assert max(log.times("a works")) <= min(log.times("b exam"))


def test_all_prepare_before_any_works_and_work_in_order(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "RELAYED_PER_CPU", 4)
    log = Log(tmp_path / "log")
    for name in "abcd":
        bench.add(name, log.source(name, load_s=0.5 * (name == "d")))
    plan = [Cell(SMALL, name, "default", 0, "time") for name in "abcd"]
    assert [record.library for record in bench.run(plan) if record.status == "measured"] == list("abcd")
    works = [log.times(f"{name} works") for name in "abcd"]
    assert max(log.times("exam")) <= min(works[0])
    assert all(max(earlier) <= min(later) for earlier, later in pairwise(works))


def test_few_prepare_at_once(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path / "log")
    for name in "abc":
        bench.add(name, log.source(name))
    monkeypatch.setattr(executor, "MOST_RELAYED", 2)
    bench.run([Cell(SMALL, name, "default", 0, "time") for name in "abc"])
    assert max(log.times("b works")) <= min(log.times("c exam"))


@pytest.mark.parametrize("order", ["abc", "bac", "acb"])
def test_memory_is_measured_before_any_time_without_waiting(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(executor, "RELAYED_PER_CPU", 3)
    log = Log(tmp_path / "log")
    for name in "abc":
        bench.add(name, log.source(name, load_s=0.5 * (name == "b")))
    plan = [Cell(SMALL, name, "default", 0, "memory" if name == "b" else "time") for name in order]
    assert [record.library for record in bench.run(plan) if record.status == "measured"] == list(order)
    assert max(log.times("b works")) <= min(log.times("a works")) <= max(log.times("a works"))
    assert max(log.times("a works")) <= min(log.times("c works"))


def test_skipped_cell_does_not_part_two_that_prepare_together(bench: Bench, tmp_path: Path) -> None:
    log = Log(tmp_path / "log")
    for name in "ab":
        bench.add(name, log.source(name))
    bench.add("c", interpreter=Interpreter(bench.folder / "python", "gone", {}, problem="no such package"))
    bench.run([Cell(SMALL, name, "default", 0, "time") for name in "acb"])
    assert max(log.times("exam")) <= min(log.times("a works"))
    assert [record.library for _, record in bench.watcher.ended] == ["c", "a", "b"]


@pytest.mark.skipif(cpus.usable_cpus() < 2, reason="one CPU")
def test_cells_without_a_time_are_verified_at_once(bench: Bench) -> None:
    """Each fake waits for the other one."""
    for name, other in ("ab", "ba"):
        meeting = f"""
import pathlib, time
pathlib.Path({str(bench.folder)!r}, "here-{name}").touch()
ends = time.monotonic() + 10
while not pathlib.Path({str(bench.folder)!r}, "here-{other}").exists():
    assert time.monotonic() < ends, "{other} never came"
return right
"""
        bench.add(name, altered(meeting))
    records = bench.run([Cell(SMALL, name, "default", 0, "verify") for name in "ab"])
    assert [record.status for record in records] == ["measured"] * 2, records
