"""Tests of a relay: two workers load at the same time, then measure one after the other."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from snnbench.adapter.contender import Work
from snnbench.cases.outcome import skipped
from snnbench.environments.interpreters import Interpreter
from snnbench.plan.cell import Cell, cells
from snnbench.recording.reading import RECORDS
from snnbench.recording.record import Record
from snnbench.run import executor
from snnbench.run.known_outcomes import KnownOutcomes
from snnbench.run.runner import Task, measure_in_relay
from snnbench.run.setup import Run, Setup
from snnbench.worker.relay import Relay
from tests.bench import HERE, SMALL, Bench, bench
from tests.fakes import CORRECT, MEASURED, altered

__all__ = ["bench"]

NO_IMPORT = CORRECT + "\nimport nothing_of_this_name\n"
DYING = altered("import os\nos._exit(3)")
HANGING = altered("import time\ntime.sleep(60)")


def test_second_waits_for_the_end_of_the_first() -> None:
    to_second, to_first = os.pipe(), os.pipe()
    first, second = Relay(to_first[0], to_second[1], True, 10), Relay(to_second[0], to_first[1], False, 10)
    waiting = threading.Thread(target=second.wait)
    waiting.start()
    first.wait()
    waiting.join(0.2)
    assert waiting.is_alive(), "the first is ready, but has not ended"
    os.close(to_second[1])
    waiting.join(5)
    assert not waiting.is_alive()
    for descriptor in (to_second[0], *to_first):
        os.close(descriptor)


def test_first_waits_neither_for_ever_nor_for_the_dead() -> None:
    to_second, to_first = os.pipe(), os.pipe()
    started = time.monotonic()
    Relay(to_first[0], to_second[1], True, patience_s=0.1).wait()
    assert 0.09 <= time.monotonic() - started < 5
    os.close(to_second[0])
    os.close(to_first[1])
    Relay(to_first[0], to_second[1], True, patience_s=60).wait()
    assert time.monotonic() - started < 5
    os.close(to_first[0])
    os.close(to_second[1])


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
    run = Run(
        {"": Setup(bench.adapters, bench.interpreters)}, bench.protocol.model_copy(update=changes), "a laptop", 1 << 40
    )
    known = KnownOutcomes()
    tasks = [Task(Cell(SMALL, name, "default", 0, "time"), name) for name in "ab"]
    records = measure_in_relay(tasks, run, known)
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
