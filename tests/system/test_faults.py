"""Tests of sweeps with faulty fakes: each fault gets its own outcome, other cells are measured, no process is left."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from snnbench.cases.outcome import failed
from tests.fakes import CORRECT, altered, quantities, write
from tests.processes import alive, noted
from tests.recordings import EXACT
from tests.sweep import lines, recordings, run_arguments, snnbench, write_config

NOTE = """
import ctypes, os, signal, subprocess, sys, time
from pathlib import Path
from snnbench.worker import messages


def note(pid):
    with Path(__file__).with_name("pids").open("a") as file:
        file.write(f"{pid}\\n")


note(os.getpid())
"""


def faulty(statement: str) -> str:
    """A fake that runs this statement in its build. Its worker notes its pid."""
    return altered(f"{statement}\nreturn right") + NOTE


TIMEOUT_S = 4.0
FAULTS = {
    "segfault": (faulty("ctypes.string_at(0)"), "crash", "died of SIGSEGV"),
    "killed": (faulty("os.kill(os.getpid(), signal.SIGKILL)"), "crash", "died of SIGKILL"),
    "status": (faulty("os._exit(7)"), "crash", "exit status 7"),
    "silent": (faulty("os._exit(0)"), "lost", "exit status 0 without a whole reply"),
    "raise": (faulty("raise RuntimeError('out of\\nluck')"), "crash", "RuntimeError: out of (raise.py:34)"),
    "missing": (
        f"import no_such_library\n{CORRECT}",
        "import",
        "ModuleNotFoundError: No module named 'no_such_library'",
    ),
    "truncate": (
        faulty("whole = messages.Reply.encode\nmessages.Reply.encode = lambda reply: whole(reply)[:-20]"),
        "lost",
        "exit status 0 without a whole reply",
    ),
    "hog": (
        faulty("np.ones(4 << 30, np.uint8)"),
        "oom-host",
        "MemoryError: Unable to allocate 4.00 GiB for an array with shape (4294967296,) and data type uint8",
    ),
    "hang": (
        faulty(
            "note(subprocess.Popen(['sleep', '60'], start_new_session=True).pid)\n"
            "note(subprocess.Popen(['sleep', '60']).pid)\n"
            "time.sleep(60)"
        ),
        "timeout",
        f"no reply within {TIMEOUT_S:g} s; killed",
    ),
}
SOUND = {
    "first": CORRECT,
    "loud": faulty("print('x' * 1_000_000)\nos.write(2, b'y' * 1_000_000)"),
    "orphaning": faulty("note(subprocess.Popen(['sleep', '60'], start_new_session=True).pid)"),
    "last": CORRECT,
}


@dataclass(frozen=True)
class Sweep:
    """A finished sweep."""

    folder: Path
    done: "CompletedProcess[str]"

    @property
    def records(self) -> list[dict[str, Any]]:
        """The lines of its records."""
        (recording,) = recordings(self.folder)
        return lines(recording)

    def csv(self) -> list[dict[str, str]]:
        """Its tidy table."""
        (recording,) = recordings(self.folder)
        printed = snnbench(self.folder, "report", recording, "--format", "csv")
        return list(csv.DictReader(io.StringIO(printed.stdout)))


def sweep(folder: Path, sources: dict[str, str], **settings: Any) -> Sweep:
    """Run these fakes in one sweep; the first is the baseline."""
    adapters = [write(folder, source, name) for name, source in sources.items()]
    config = write_config(folder, list(sources), **settings)
    return Sweep(folder, snnbench(folder, *run_arguments(config, adapters)))


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    sources = {"first": CORRECT, **{name: source for name, (source, _, _) in FAULTS.items()}, **SOUND}
    settings = {"trials": 1, "memory_trials": 0, "timeout_seconds": TIMEOUT_S}
    return sweep(tmp_path_factory.mktemp("faults"), sources, **settings)


def test_every_fault_has_its_outcome(faults: Sweep) -> None:
    outcomes = {line["library"]: line["outcome"] for line in faults.records if line["library"] in FAULTS}
    assert outcomes == {name: failed(kind, reason).as_dict() for name, (_, kind, reason) in FAULTS.items()}


def test_every_other_cell_is_measured(faults: Sweep) -> None:
    assert len(faults.records) == len(FAULTS) + len(SOUND)
    outcomes = {line["library"]: line["outcome"] for line in faults.records if line["library"] not in FAULTS}
    assert outcomes == {name: EXACT.as_dict() for name in SOUND}


def test_sweep_with_failed_cells_ends_with_its_own_exit_code(faults: Sweep) -> None:
    assert faults.done.returncode == 5
    assert f"{len(SOUND)} of {len(FAULTS) + len(SOUND)} cells measured" in faults.done.stderr


def test_table_has_a_row_or_a_reason_for_every_fake(faults: Sweep) -> None:
    text = faults.done.stdout.splitlines()
    assert {line.split("|")[1].strip() for line in text if line.startswith("| ")} == {"library", "---", *SOUND}
    for name, (_, kind, reason) in FAULTS.items():
        assert f"- {name}: failed: {kind}: {reason}" in text


def test_no_process_is_left_alive(faults: Sweep) -> None:
    """Neither workers nor their child processes are, in a separate session or not."""
    pids = noted(faults.folder / "pids")
    workers = len(set(FAULTS) - {"missing"}) + len(set(SOUND) - {"first", "last"})
    assert len(set(pids)) == workers + 2 + 2, (
        "two children of the hanging one, one of each network of the orphaning one"
    )
    assert not [pid for pid in pids if alive(pid)]


def test_log_of_a_failed_worker_is_kept_up_to_a_limit(faults: Sweep) -> None:
    log = {record["library"]: record["log"] for record in faults.records}
    assert "Traceback" in log["raise"] and "out of\nluck" in log["raise"]
    assert "No module named 'no_such_library'" in log["missing"]
    assert log["loud"] == log["first"] == ""
    assert max(map(len, log.values())) < 10_000


COUNTED = """
from pathlib import Path

with Path(__file__).with_suffix(".workers").open("a+") as file:
    file.write("x")
    WORKER = file.tell()
"""
"""Gives a fake the number of its worker: 1 for the first."""


def lying(condition: str) -> str:
    """A fake with another decay if this condition holds."""
    return (
        altered(f"beta = case.beta - 0.1 * ({condition})\nreturn network(replace(case, beta=beta), weights)") + COUNTED
    )


LIARS: dict[str, tuple[str, list[tuple[str, int]]]] = {
    "always": ("True", [("time", 0), ("memory", 0), ("time", 1)]),
    "in-memory": ("WORKER == 2", [("memory", 0)]),
    "in-a-trial": ("WORKER == 3", [("time", 1)]),
}
"""The condition under which a fake does other work, and the cells in which that happens."""


@pytest.fixture(scope="module")
def lies(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return sweep(
        tmp_path_factory.mktemp("lies"), {"good": CORRECT, **{name: lying(when) for name, (when, _) in LIARS.items()}}
    )


def wrong(of: Sweep, name: str) -> list[dict[str, Any]]:
    """The `incorrect` records of a liar."""
    return [line for line in of.records if line["library"] == name and line["outcome"].get("kind") == "incorrect"]


@pytest.mark.parametrize("name", LIARS)
def test_incorrect_cell_has_no_time_in_its_record(lies: Sweep, name: str) -> None:
    assert lies.done.returncode == 5
    _, cells = LIARS[name]
    incorrect = wrong(lies, name)
    assert sorted((record["measure"], record["trial"]) for record in incorrect) == sorted(cells)
    for record in incorrect:
        filled = {key: value for key, value in record.items() if value not in (None, {}, [], "")}
        assert quantities(filled) == []


@pytest.mark.parametrize("name", LIARS)
def test_incorrect_contender_has_no_time_in_the_table(lies: Sweep, name: str) -> None:
    text = lies.done.stdout.splitlines()
    assert [line.split("|")[1].strip() for line in text if line.startswith("| ")] == ["library", "---", "good"]
    for record in wrong(lies, name):
        assert f"- {name}: failed: incorrect: {record['outcome']['reason']}" in text


def test_incorrect_contender_has_no_value_in_the_csv(lies: Sweep) -> None:
    rows = lies.csv()
    assert {row["library"] for row in rows if row["value"]} == {"good"}
    assert {row["library"] for row in rows if row["kind"] == "incorrect"} == set(LIARS)
