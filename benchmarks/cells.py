"""What a cell costs beyond its worker, and the plan of a large sweep: 1,000 empty cells, 100,000 planned ones.

    python -m benchmarks cells

Each worker of the sweep is a shell that answers at once with a prepared reply. The cost of a cell is the time from its
start to its record, less the time to start the same shell by hand; the two alternate. Memory is that of this process,
the parent of all workers. The plan is `snnbench run --dry-run` in a separate process. Exits with 1 if a cell costs more
than 30 ms at the median, the parent grows by more than 16 MiB, or the plan takes more than 5 s.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psutil

from benchmarks.basecase import CASE, axes
from benchmarks.outcome import show
from snnbench.adapter import reading
from snnbench.cases.outcome import measured
from snnbench.environments.interpreters import EnvironmentKey, Interpreter
from snnbench.plan.cell import Cell
from snnbench.plan.config import Protocol
from snnbench.recording.record import Record
from snnbench.recording.writer import append
from snnbench.run.executor import Executor
from snnbench.run.setup import RunContext, Setup
from snnbench.run.store import InFolder
from snnbench.worker.messages import Note, Reply

CELLS, PLANNED = 1000, 100_000
MOST_MS, MOST_GROWTH_BYTES, LONGEST_PLAN_S = 30.0, 16 << 20, 5.0
PROTOCOL = Protocol(
    phases=("train",),
    trials=1,
    memory_trials=0,
    warmup_passes=1,
    repetitions=20,
    min_repetition_ms=1.0,
    max_phase_seconds=1.0,
    timeout_seconds=20.0,
    memory_limit_gib=1.0,
    seed=0,
)
ADAPTER = '"""Does nothing."""\nBACKEND = "numpy"\n\n\ndef build(case, weights, variant):\n    pass\n'
SHELL = '#!/bin/sh\neval "cat {reply} >&$6"\n'
"""The sixth argument of a worker's command line is the descriptor of its reply."""
SMALLEST = CASE.with_(neurons=1, batch=1, time_steps=1)
PLAN = {
    "name": "plan",
    "analysis": "Many cells.",
    "baseline": "torch-loop",
    "protocol": PROTOCOL.model_dump(mode="json", exclude={"memory_limit_gib"})
    | {"trials": 5, "repetitions": 3, "timeout_seconds": 10.0},
    "case": axes(CASE),
    "sweep": [
        {
            "name": "all",
            "libraries": ["torch-loop/unbind", "torch-loop/index"],
            "neurons": list(range(1, 101)),
            "seed": list(range(PLANNED // 1000)),
        }
    ],
}
"""The config of the plan."""


class Clock:
    """Notes how long each cell took from its start to its record."""

    def __init__(self) -> None:
        self.durations_ms: list[float] = []
        self._started = 0.0

    def start(self, cell: Cell) -> None:
        """Note the start of a cell."""
        self._started = time.perf_counter()

    def end(self, cell: Cell, record: Record) -> None:
        """Note the time at which a cell is recorded."""
        assert record.status == "measured", record.outcome
        self.durations_ms.append(1e3 * (time.perf_counter() - self._started))

    def note(self, cell: Cell, note: Note) -> None:
        """Do nothing: no worker of this benchmark fills a cache."""

    def add(self, cells: Sequence[Cell]) -> None:
        """Do nothing: this benchmark repeats no cell."""


def sweep(folder: Path) -> tuple[list[float], list[float], int]:
    """(ms of each cell, ms of each shell started by hand, bytes that this process grew by)."""
    timing = {"first_call_ns": 10**6, "warmup_ns": [10**6], "passes": 1, "repetitions_ns": [10**6] * 20}
    reply = Reply(measured("exact"), phases={"train": timing})
    (folder / "reply").write_bytes(reply.encode())
    shell, adapter = folder / "shell", folder / "fake.py"
    shell.write_text(SHELL.format(reply=folder / "reply"))
    shell.chmod(0o755)
    adapter.write_text(ADAPTER)
    interpreters: dict[EnvironmentKey, Interpreter] = {(("fake", "default"), ()): Interpreter(shell, "none", {})}
    run = RunContext({"": Setup({"fake": reading.read(adapter)}, interpreters)}, PROTOCOL, "here", 1 << 40)
    clock, by_hand, process = Clock(), [], psutil.Process()
    before = 0
    with append(folder / "recording", {"identity": "cells"}, {}) as writer:
        executor = Executor(run, InFolder(writer), clock)
        for number in range(CELLS):
            executor.execute([Cell(SMALLEST.with_(neurons=number + 1), "fake", "default", 0, "time")])
            started = time.perf_counter()
            subprocess.run(
                [shell, "-P", "-m", "worker", "adapter", "--reply-fd", "1"], stdout=subprocess.DEVNULL, check=True
            )
            by_hand.append(1e3 * (time.perf_counter() - started))
            if number == CELLS // 10:
                before = process.memory_info().rss
    return clock.durations_ms, by_hand, process.memory_info().rss - before


def toml(config: Mapping[str, Any]) -> str:
    """A config as TOML: its values look as in JSON."""
    tables = ("protocol", "case", "sweep")
    parts = {"": {name: value for name, value in config.items() if name not in tables}}
    parts |= {"[protocol]": config["protocol"], "[case]": config["case"], "[[sweep]]": config["sweep"][0]}
    return "\n".join(
        "\n".join([heading, *(f"{key} = {json.dumps(value)}" for key, value in part.items())])
        for heading, part in parts.items()
    )


def plan(folder: Path) -> float:
    """Seconds to plan many cells and print the forecast."""
    config = folder / "plan.toml"
    config.write_text(toml(PLAN))
    started = time.perf_counter()
    command = [sys.executable, "-m", "snnbench", "run", "--config", str(config), "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"\n{PLANNED} cells" in done.stdout, done.stderr
    return time.perf_counter() - started


def main() -> int:
    """Measure, print, and return 1 if the cost is too high."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory() as name:
        cells_ms, by_hand_ms, growth_bytes = sweep(Path(name))
        plan_s = plan(Path(name))
    cost_ms = median(cells_ms) - median(by_hand_ms)
    low, _, high = quantiles(cells_ms, n=4)
    later = median(cells_ms[-100:]) / median(cells_ms[:100])
    rows = [
        ("a cell beyond its worker", f"{cost_ms:.2f} ms", f"{MOST_MS:g} ms"),
        ("a cell with its worker, quartiles", f"{low:.2f} to {high:.2f} ms", "-"),
        ("the last hundred cells over the first", f"{later:.2f}", "-"),
        ("growth of the parent", f"{growth_bytes / (1 << 20):.2f} MiB", f"{MOST_GROWTH_BYTES >> 20} MiB"),
        (f"plan and dry run of {PLANNED:,} cells", f"{plan_s:.2f} s", f"{LONGEST_PLAN_S:g} s"),
    ]
    show(f"{len(cells_ms):,} cells with workers that do nothing", ("what", "measured", "limit"), rows)
    return int(cost_ms > MOST_MS or growth_bytes > MOST_GROWTH_BYTES or plan_s > LONGEST_PLAN_S)
