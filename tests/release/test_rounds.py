"""Tests of runs that measure contended cells again: in rounds after the plan, with every attempt kept."""

import os
import signal
import threading
from pathlib import Path

import pytest

from snnbench import checking
from snnbench.plan.cell import Cell
from snnbench.recording.reading import read
from snnbench.recording.record import SCHEMA, Record
from snnbench.run.executor import Executor
from snnbench.run.setup import RunContext, Setup
from snnbench.run.store import InFolder
from tests.bench import SMALL, Bench, bench
from tests.fakes import CORRECT
from tests.sweep import lines, recordings, run_arguments, snnbench, write_config

pytestmark = pytest.mark.quiet

__all__ = ["bench"]

LYING = """
from pathlib import Path
from snnbench.worker import contention, probes

probes.Probes.as_dict = lambda self: {{"interpreter": {{"looks_ns": [[5], [5]]}}}}

with Path(__file__).with_suffix(".runs").open("a+") as file:
    file.write("x")
    file.flush()
    file.seek(0)
    TAKEN = {taken}[len(file.read()) - 1]
contention.between = lambda *usages: {{"foreign_cpus": TAKEN, "stolen_cpus": 0.0, "own_cpus": 1.0}}
"""
"""Makes a fake report these foreign CPUs, one number for each of its processes in turn."""


def rounds(bench: Bench, trials: int = 1, remeasure: int = 2) -> list[Record]:
    """Run a plan of all fakes of a bench. Returns the records in the order of their creation."""
    plan = [Cell(SMALL, name, "default", trial, "time") for trial in range(trials) for name in bench.adapters]
    bench.protocol = bench.protocol.model_copy(update={"remeasure": remeasure})
    return bench.run(plan)


def test_disturbed_cells_run_again_in_rounds_after_the_plan(bench: Bench) -> None:
    """All three attempts of a are disturbed, b's second is undisturbed, and c is never disturbed."""
    for name, taken in (("a", [0.5, 0.4, 0.6, 0.0]), ("b", [0.5, 0.0, 9.9]), ("c", [0.0, 9.9])):
        bench.add(name, LYING.format(taken=taken) + CORRECT)
    made = rounds(bench)
    assert [(one.library, one.attempt) for one in made] == [
        *[("a", 0), ("b", 0), ("c", 0)],
        *[("a", 1), ("b", 1)],
        ("a", 2),
    ]
    assert [cell.library for cell in bench.watcher.again] == ["a", "b", "a"]
    stored = read(bench.recording)
    counting = {one.library: (one.attempt, one.flags) for one in stored.records}
    assert counting == {"a": (1, ["contended"]), "b": (1, []), "c": (0, [])}
    assert len(stored.attempts) == 3 and not list(bench.recording.glob("*.running"))
    assert rounds(bench) == [], "the same command measures nothing beyond the limit"


@pytest.mark.parametrize(("remeasure", "count"), [(0, 1), (1, 2), (3, 4)])
def test_protocol_limits_the_number_of_attempts(bench: Bench, remeasure: int, count: int) -> None:
    bench.add("a", LYING.format(taken=[0.5] * 5) + CORRECT)
    assert [one.attempt for one in rounds(bench, remeasure=remeasure)] == list(range(count))


def test_killed_run_continues_with_the_remaining_attempts(bench: Bench) -> None:
    bench.add("a", LYING.format(taken=[0.5, 0.4, 0.3, 0.0]) + CORRECT)
    first = rounds(bench, remeasure=0)
    assert [one.attempt for one in first] == [0], "as if it was killed here"
    assert [one.attempt for one in rounds(bench)] == [1, 2]
    assert [one.flags for one in read(bench.recording).records] == [["contended"]]
    assert rounds(bench) == []


def test_interrupted_attempt_is_repeated_under_its_number(bench: Bench) -> None:
    waiting = "import time\nif TAKEN < 0:\n    Path(__file__).with_suffix('.now').touch()\n    time.sleep(30)\n"
    bench.add("a", LYING.format(taken=[0.5, -1.0, 0.0]) + waiting + CORRECT)

    def interrupt() -> None:
        while not (bench.folder / "a.now").exists():
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        rounds(bench)
    watcher.join()
    stored = read(bench.recording)
    assert [one.status for one in stored.records] == ["measured"]
    assert [(one.attempt, one.outcome.kind) for one in stored.attempts] == [(1, "cancelled")]
    assert [one.attempt for one in rounds(bench)] == [1]
    stored = read(bench.recording)
    assert [(one.attempt, one.flags) for one in stored.records] == [(1, [])]
    assert [one.attempt for one in stored.attempts] == [0]


def test_incorrect_attempt_decides_the_cell(bench: Bench) -> None:
    wrong = "if TAKEN < 0:\n    build = lambda case, weights, variant: network(replace(case, beta=0.5), weights)\n"
    bench.add("a", LYING.format(taken=[0.5, -1.0, 0.0]) + CORRECT + wrong)
    made = rounds(bench)
    assert [(one.attempt, one.outcome.kind) for one in made] == [(0, None), (1, "incorrect")]
    assert [one.outcome.kind for one in read(bench.recording).records] == ["incorrect"]


def test_memory_and_verification_are_not_measured_again(bench: Bench) -> None:
    bench.add("a", LYING.format(taken=[0.5] * 9) + CORRECT)
    plan = [Cell(SMALL, "a", "default", 0, measure) for measure in ("memory", "verify")]  # type: ignore[arg-type]
    bench.protocol = bench.protocol.model_copy(update={"remeasure": 2})
    assert [one.attempt for one in bench.run(plan)] == [0, 0]


def test_run_on_a_busy_machine_ends_with_a_message(tmp_path: Path) -> None:
    """The whole command, with a shard, and the output of other commands for its recording."""
    from tests.fakes import write

    adapter = write(tmp_path, LYING.format(taken=[0.5, 0.4, 0.0, 0.0, 0.0]) + CORRECT, "a")
    config = write_config(tmp_path, ["a"], trials=2, memory_trials=0, remeasure=1)
    options = run_arguments(config, [adapter], "--shard", "1/1")
    planned = snnbench(tmp_path, *options, "--dry-run").stdout
    assert "| a | ok | 2 |" in planned and not recordings(tmp_path)
    done = snnbench(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 cells were disturbed, and are measured again" in done.stderr
    assert "[4/4]" in done.stderr and "measured again" in done.stderr
    (folder,) = recordings(tmp_path)
    assert [line["attempt"] for line in lines(folder)] == [0, 0, 1, 1]
    assert {line["schema"] for line in lines(folder)} == {SCHEMA}
    assert [one.text for one in checking.check(folder) if one.rule in ("files", "flags", "trials")] == []
    printed = snnbench(tmp_path, "status", folder).stdout
    assert printed.startswith(f"{folder}: 2 of 2 cells, finished; 2 measured")
    again = snnbench(tmp_path, *options)
    assert len(lines(folder)) == 4 and len(recordings(tmp_path)) == 2, again.stderr


def test_parallel_cells_are_measured_again_on_their_gpus(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from snnbench.machine import cpus, gpus
    from snnbench.run import slots
    from tests.run.test_executor import CARDS, anywhere

    monkeypatch.setattr(gpus, "has_cuda", lambda: True)
    monkeypatch.setattr(cpus, "usable_cpus", lambda *given: 2)
    monkeypatch.setenv(slots.VARIABLE, str(bench.folder / "slots"))
    for name, taken in (("a", [0.0, 0.0]), ("b", [0.5, 0.0])):
        bench.add(name, LYING.format(taken=taken) + anywhere())
    sizes = {"a": 16, "b": 20}
    cases = {name: SMALL.with_(neurons=neurons, device="cuda") for name, neurons in sizes.items()}
    plan = [Cell(case, name, "default", 0, "time") for name, case in cases.items()]
    protocol = bench.protocol.model_copy(update={"remeasure": 1})
    setup = RunContext({"": Setup(bench.adapters, bench.interpreters)}, protocol, "s", 1 << 40)
    with bench.writer() as writer:
        Executor(setup, InFolder(writer), bench.watcher).execute(plan, CARDS)
    made = [record for _, record in bench.watcher.ended]
    assert sorted((cell_record.library, cell_record.attempt) for cell_record in made) == [("a", 0), ("b", 0), ("b", 1)]
    cards = {cell_record.library: set[str]() for cell_record in made}
    for cell_record in made:
        cards[cell_record.library].add(cell_record.settings["card"])
    assert cards == {"a": {CARDS[0].name}, "b": {CARDS[1].name}}
