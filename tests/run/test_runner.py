"""Tests of the runner, with real workers of fake adapters: every planned cell becomes exactly one record."""

import json
import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from snnbench.adapter.contender import Work
from snnbench.cases.outcome import Outcome
from snnbench.environments import interpreters
from snnbench.environments.interpreters import Interpreter
from snnbench.machine import description, throttling
from snnbench.machine.gpus import Card
from snnbench.plan.cell import Cell, cells
from snnbench.recording.reading import RECORDS, read
from snnbench.run import executor, known_outcomes, process, runner
from snnbench.run.endings import record_of
from snnbench.run.process import ALLOCATOR
from snnbench.run.setup import RunContext, Setup
from tests.bench import PROTOCOL, SMALL, Bench, bench
from tests.fakes import CORRECT, MEASURED, altered, quantities
from tests.recordings import EXACT

__all__ = ["bench"]

NOTED = "from pathlib import Path\nPath(__file__).with_suffix('.built').open('a').write('x')\n"
"""Makes a fake leave a mark for each worker that runs it."""


def test_every_planned_cell_is_run_and_recorded_once(bench: Bench) -> None:
    bench.add("a")
    bench.add("b", altered("raise ValueError('no')"))
    plan = cells([Work(SMALL, name, "default") for name in "ab"], PROTOCOL)
    first = bench.run(plan[:1])
    rest = bench.run(plan)
    assert bench.watcher.started == [cell for cell, _ in bench.watcher.ended] == plan[1:]
    assert [record for _, record in bench.watcher.ended] == rest
    assert read(bench.recording).records == first + rest
    assert [(r.library, r.measure, r.trial) for r in first + rest] == [(c.library, c.measure, c.trial) for c in plan]
    assert {record.library: record.status for record in first + rest} == {"a": "measured", "b": "failed"}
    assert bench.run(plan) == [], "a failed cell is a result, too"


def test_measured_cell_records_durations_and_provenance(bench: Bench) -> None:
    bench.add("a")
    record = bench.run_cell("a")
    assert record.outcome == EXACT
    timing = record.phases["train"]
    assert len(timing["repetitions_ns"]) == PROTOCOL.repetitions and min(timing["repetitions_ns"]) > 0
    assert (len(timing["warmup_ns"]), timing["passes"] >= 1, timing["first_call_ns"] > 0) == (1, True, True)
    assert timing["times_floor"] > 1 and timing["floor_ns"] > 0
    assert set(record.peaks) == {"current", "weight_gradient", "input_gradient", "copy", "call"}
    assert all(min(peak["repetitions_ns"]) > 0 for peak in record.peaks.values())
    assert set(record.checks) == {"exam-1", "spot-train", "fresh-train"}
    assert record.version == "0.0" != record.settings["version"], "the environment's version, not the worker's word"
    assert record.environment == "here" and record.adapter == bench.adapters["a"].digest
    assert record.wall_s is not None and record.wall_s > 0 and record.log == ""


def test_memory_is_measured_alone_with_the_allocator_set(bench: Bench) -> None:
    bench.add("a")
    record = bench.run_cell("a", measure="memory")
    assert record.memory["phase"] == "train" and record.memory["host"]["peak_bytes"] >= 0
    assert (record.phases, record.settings["malloc"]) == ({}, ALLOCATOR)
    assert bench.run_cell("a").settings["malloc"] != ALLOCATOR


@pytest.mark.parametrize("measure", ["time", "memory", "verify"])
def test_incorrect_cell_holds_no_time(bench: Bench, measure: str) -> None:
    bench.add("a", altered("return network(replace(case, beta=case.beta - 0.1), weights)"))
    record = bench.run_cell("a", measure=measure)
    assert record.outcome.kind == "incorrect"
    assert (record.phases, record.memory, record.wall_s) == ({}, {}, None)
    (line,) = (json.loads(line) for line in (bench.recording / RECORDS).read_text().splitlines())
    assert [place for place in quantities(line) if place != "/wall_s"] == []
    assert line["wall_s"] is None


def test_missing_environment_fails_its_own_cells_only(bench: Bench) -> None:
    bench.add("a", NOTED + CORRECT, Interpreter(Path(), "", {}, "a: no such version; check the pins"))
    bench.add("b")
    records = bench.run([Cell(SMALL, name, "default", 0, "time") for name in "ab"])
    assert records[0].outcome == Outcome(
        status="failed", kind="environment", reason="a: no such version; check the pins"
    )
    assert records[1].status == "measured"
    assert bench.workers("a") == 0


def test_missing_interpreter_fails_its_own_cells_only(bench: Bench) -> None:
    bench.add("a", interpreter=Interpreter(bench.folder / "python", "gone", {}))
    bench.add("b")
    records = bench.run([Cell(SMALL, name, "default", 0, "time") for name in "ab"])
    assert records[0].outcome.kind == "environment"
    assert records[0].outcome.reason.startswith("the worker cannot be started: [Errno 2] No such file or directory")
    assert records[1].status == "measured"


def test_machine_that_can_start_no_worker_ends_the_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell failed as `environment`, and the same command did not run them again."""
    bench.add("a")
    home = bench.folder / "home"
    home.write_text("no folder")
    plan = [Cell(SMALL, "a", "default", trial, "time") for trial in (0, 1)]
    with pytest.raises(process.Broken, match="the same command continues"):
        bench.run(plan)
    assert {one.outcome.kind for one in read(bench.recording).records} <= {"cancelled"}
    home.unlink()
    assert [one.status for one in bench.run(plan)] == ["measured"] * 2


def test_environment_that_a_full_disk_broke_is_no_failure_of_the_library(bench: Bench) -> None:
    bench.add("a", interpreter=Interpreter(Path(), "", {}, "a: No space left on device (os error 28)"))
    assert bench.run_cell("a").outcome.kind == "cancelled"


def test_unavailable_device_or_cpus_start_no_worker(bench: Bench) -> None:
    bench.add("a", NOTED + CORRECT)
    no_gpu, too_many = bench.run_cell("a", SMALL.with_(device="cuda")), bench.run_cell("a", SMALL.with_(threads=10_000))
    assert no_gpu.outcome == Outcome(
        status="skipped", kind="unavailable", reason="no CUDA device on this machine; run it on one"
    )
    assert too_many.outcome.kind == "unavailable"
    assert too_many.outcome.reason.startswith("threads = 10000: expected 1 to ")
    assert bench.workers("a") == 0


@pytest.mark.parametrize("at_once", [1, 3])
def test_unsupported_case_is_not_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Workers that prepare together may all find it out."""
    monkeypatch.setattr(executor, "MOST_RELAYED", at_once)
    bench.add("a", altered(f"from snnbench.adapter import Unsupported\n{NOTED}raise Unsupported('no such reset')"))
    bench.protocol = PROTOCOL.model_copy(update={"trials": 3, "memory_trials": 1})
    records = bench.run(cells([Work(SMALL, "a", "default")], bench.protocol))
    assert [record.outcome.reason for record in records] == ["no such reset"] * 4
    assert {record.status for record in records} == {"skipped"}
    assert 1 <= bench.workers("a") <= at_once


def test_larger_sizes_are_inferred_after_out_of_memory(bench: Bench) -> None:
    hog = altered("if case.time_steps > 8: np.ones((case.neurons << 26,), np.uint8)\nreturn right")  # 64 MiB a neuron
    bench.add("a", NOTED + hog)
    bench.add("b")
    sizes = [4, 16, 64]
    plan = [Cell(SMALL.with_(neurons=n), name, "default", 0, "time") for n in sizes for name in "ab"]
    records = {(record.library, record.case.neurons): record.outcome for record in bench.run(plan)}
    assert {records["b", n].status for n in sizes} == {"measured"}
    assert [records["a", n].kind for n in sizes] == [None, "oom-host", "oom-host"]
    assert records["a", 16].reason.endswith(
        "Unable to allocate 1.00 GiB for an array with shape (1073741824,) and data type uint8"
    )
    assert records["a", 64].inferred_from == "neurons=16, batch=5, time_steps=12, layers=1"
    (later,) = bench.run([*plan, Cell(SMALL.with_(neurons=128), "a", "default", 0, "time")])
    assert later.outcome.inferred_from == "neurons=16, batch=5, time_steps=12, layers=1"
    assert bench.workers("a") <= 3, "the third may prepare beside the others, and measures nothing"


def test_interrupted_cell_is_recorded_and_run_again(bench: Bench) -> None:
    flag = bench.folder / "interrupted"
    bench.add("a")
    bench.add(
        "b",
        altered(
            "import os, signal, time\nfrom pathlib import Path\n"
            f"if {MEASURED} and not Path({str(flag)!r}).exists():\n"
            f"    Path({str(flag)!r}).touch(); os.kill(os.getppid(), signal.SIGINT); time.sleep(30)\n"
            "return right"
        ),
    )
    plan = [Cell(SMALL, name, "default", trial, "time") for name, trial in (("a", 0), ("b", 0), ("a", 1))]
    with pytest.raises(KeyboardInterrupt):
        bench.run(plan)
    recorded = [(record.library, record.outcome.kind) for record in read(bench.recording).records]
    assert recorded == [("a", None), ("b", "cancelled")]
    again = bench.run(plan)
    assert [(record.library, record.trial, record.status) for record in again] == [
        ("b", 0, "measured"),
        ("a", 1, "measured"),
    ]
    assert [record.status for record in read(bench.recording).records] == ["measured"] * 3


def test_changed_adapter_is_measured_again(bench: Bench) -> None:
    bench.add("a")
    old = bench.run_cell("a")
    bench.add("a", CORRECT + "\n# faster\n")
    new = bench.run_cell("a")
    assert old.cell != new.cell and read(bench.recording).records == [new]


def test_interpreter_key_depends_on_installed_packages(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        bench.add(name)
    say: list[str] = []
    first = interpreters.interpreters(bench.works(), bench.adapters, managed=False, cuda=False, say=say.append)
    assert first[("a", "default"), ()] == first[("b", "default"), ()]
    assert (
        first[("a", "default"), ()].python == Path(sys.executable) and "numpy" in first[("a", "default"), ()].versions
    )
    installed = bench.folder / "site" / "extra-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    monkeypatch.setenv("PYTHONPATH", str(installed.parent))
    other = interpreters.interpreters(bench.works(), bench.adapters, managed=False, cuda=False, say=say.append)
    assert other[("a", "default"), ()].versions["extra"] == "1.0"
    assert other[("a", "default"), ()].key != first[("a", "default"), ()].key


def test_worker_in_the_current_python_imports_from_pythonpath(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.folder / "site").mkdir()
    (bench.folder / "site" / "carried.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(bench.folder / "site"))
    bench.add("a", CORRECT + "\nimport carried\n")
    assert bench.run_cell("a").outcome.status == "measured"


def test_malformed_pins_are_a_problem_of_their_adapter(bench: Bench) -> None:
    bench.add("a", '# /// script\n# dependencies = ["no such thing !!"]\n# ///\n' + CORRECT)
    resolved = interpreters.interpreters(bench.works(), bench.adapters, managed=True, cuda=False, say=lambda _: None)
    assert "script header" in resolved[("a", "default"), ()].problem


def test_unsupported_device_needs_no_environment(bench: Bench) -> None:
    """For example, an environment that needs a CUDA toolkit."""
    bench.add("elsewhere", CORRECT + '\nDEVICES = ("cuda",)\n', Interpreter(Path(), "", {}, "cannot be made"))
    assert bench.run_cell("elsewhere").outcome == Outcome(
        status="skipped", kind="unsupported", reason="runs on cuda only"
    )


def test_cell_is_flagged_by_throttling_of_its_own_gpu(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = count()
    hot_card = SimpleNamespace(
        NVMLError=OSError,
        NVMLLibraryMismatchError=KeyError,
        NVML_PERF_POLICY_POWER=0,
        NVML_PERF_POLICY_THERMAL=1,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetViolationStatus=lambda handle, policy: SimpleNamespace(
            violationTime=next(readings) if handle == 0 else 0
        ),
    )
    monkeypatch.setattr(throttling, "nvidia_driver", lambda: hot_card)
    monkeypatch.setattr(throttling, "COUNTERS", "no counters of CPUs")
    bench.add("a")
    cell = Cell(SMALL, "a", "default", 0, "time")
    setup = RunContext({"": Setup(bench.adapters, bench.interpreters)}, PROTOCOL, "a laptop", 1 << 40)

    def flagged(card: Card | None) -> bool:
        (record,) = runner.Lane(setup, known_outcomes.KnownOutcomes(), card).measure([runner.Task(cell, "key")])
        return "throttled" in record.flags

    assert flagged(Card("GPU-hot", 0))
    assert not flagged(Card("GPU-cool", 1))
    assert not flagged(Card("MIG-slice", None))
    assert not flagged(None)


def test_memory_limit_is_the_machines_or_its_control_groups() -> None:
    assert description.memory_bytes({"memory": {"total_bytes": 8, "limit_bytes": None}}) == 8
    assert description.memory_bytes({"memory": {"total_bytes": 8, "limit_bytes": 4}}) == 4
    assert description.memory_bytes(description.facts()) > 0


def test_version_is_that_of_the_environment_not_of_the_librarys_own_word(bench: Bench) -> None:
    """A library that changes what its worker is told: check compares both."""
    lie = "import importlib.metadata\nimportlib.metadata.version = lambda name: '99'"
    bench.add("a", f"{CORRECT}\n{lie}\n")
    (record,) = bench.run(cells([Work(SMALL, "a", "default")], PROTOCOL)[:1])
    assert (record.version, record.settings["version"]) == ("0.0", "99")


def test_record_has_the_time_at_which_its_cell_started(bench: Bench) -> None:
    """It had the time of the end, and a cell may take minutes."""
    bench.add("a")
    cell = Cell(SMALL, "a", "default", 0, "time")
    record = record_of(cell, "key", bench.setup(), process.Ending(None, 1, False, "", 600.0))
    age = datetime.now(UTC) - datetime.fromisoformat(record.started)
    assert timedelta(seconds=600) <= age < timedelta(seconds=660)
