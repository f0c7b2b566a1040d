"""A bench: a folder with fake adapters and a recording, and the runner on it."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from snnbench.adapter import declaration, reading
from snnbench.adapter.contender import Work
from snnbench.cases.case import Case
from snnbench.environments.interpreters import EnvironmentKey, Interpreter
from snnbench.plan.cell import Cell
from snnbench.plan.config import Protocol
from snnbench.recording.record import Record
from snnbench.recording.writer import Writer, append
from snnbench.run.executor import Executor
from snnbench.run.setup import RunContext, Setup
from snnbench.run.store import InFolder
from snnbench.worker.messages import Note
from tests.fakes import CASE, CORRECT, write

SMALL = CASE.with_(neurons=16, batch=5, time_steps=12)
PROTOCOL = Protocol(
    phases=("train",),
    trials=1,
    memory_trials=0,
    warmup_passes=1,
    repetitions=3,
    min_repetition_ms=0.01,
    max_phase_seconds=1.0,
    timeout_seconds=20.0,
    memory_limit_gib=1.0,
    seed=0,
    remeasure=0,
)
HERE = Interpreter(Path(sys.executable), "here", {"numpy": "0.0"})


class Watcher:
    """Notes the cells that start and end."""

    def __init__(self) -> None:
        self.started: list[Cell] = []
        self.ended: list[tuple[Cell, Record]] = []
        self.again: list[Cell] = []
        self.noted: list[tuple[Cell, Note]] = []

    def start(self, cell: Cell) -> None:
        self.started.append(cell)

    def note(self, cell: Cell, note: Note) -> None:
        self.noted.append((cell, note))

    def end(self, cell: Cell, record: Record) -> None:
        self.ended.append((cell, record))

    def add(self, cells: Sequence[Cell]) -> None:
        self.again += cells


class Bench:
    """A folder with fake adapters and a recording, and the runner on it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.recording = folder, folder / "recording"
        self.adapters: dict[str, declaration.Adapter] = {}
        self.interpreters: dict[EnvironmentKey, Interpreter] = {}
        self.protocol = PROTOCOL
        self.watcher = Watcher()

    def add(self, name: str, source: str = CORRECT, interpreter: Interpreter = HERE) -> None:
        """Add a fake to the folder."""
        self.adapters[name] = reading.read(write(self.folder, source, name))
        self.interpreters[(name, "default"), ()] = interpreter

    def works(self) -> list[Work]:
        """A case for each fake."""
        return [Work(SMALL, name, "default") for name in self.adapters]

    def workers(self, name: str) -> int:
        """The number of workers that ran a fake with marks."""
        marks = self.folder / f"{name}.built"
        return len(marks.read_text()) if marks.exists() else 0

    def setup(self) -> RunContext:
        """The constants of a run."""
        return RunContext({"": Setup(self.adapters, self.interpreters)}, self.protocol, "a laptop", 1 << 40)

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """The recording, open."""
        with append(self.recording, {"identity": "this"}, {}) as writer:
            yield writer

    def run(self, plan: list[Cell]) -> list[Record]:
        """Run the missing cells of a plan."""
        self.watcher = Watcher()
        setup = self.setup()
        with self.writer() as writer:
            Executor(setup, InFolder(writer), self.watcher).execute(plan)
        return [record for _, record in self.watcher.ended]

    def run_cell(self, name: str, case: Case = SMALL, measure: Any = "time") -> Record:
        """The record of one cell."""
        (record,) = self.run([Cell(case, name, "default", 0, measure)])
        return record


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return Bench(tmp_path)
