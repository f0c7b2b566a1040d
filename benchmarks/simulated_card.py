"""The documents' charts on a simulated card: whether they fit into so many minutes.

    python -m benchmarks card --simulated --minutes 14 [--into FOLDER]

All but the machine and the workers is real: the plan, the executor, the relay of workers, the budget, the records and
their packing (benchmarks/charts.py). A worker sleeps as long as simulated_card.toml says. Two hosts are simulated at
once, since nothing computes: one with these durations, and one that imports libraries slowly.
"""

import json
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import charts
from benchmarks.outcome import show
from benchmarks.simulated_worker import IMPORT, PARTS
from snnbench.adapter.discovery import discover
from snnbench.plan import config, selection
from snnbench.plan.cell import cells
from snnbench.recording import reading

TABLE = Path(__file__).with_suffix(".toml")
HOSTS = {"as assumed": 1.0, "imports take 3 times as long": 3.0}
"""How many times as long imports take, by the title of a table."""
NOTES = (
    "a simulation: no GPU took part, and workers slept in place of their work",
    "the durations and their sources are in simulated_card.toml; many of them are assumed",
)
COLUMNS = ("part", "cells", "measured", "begins s", "ends s", "left s")


@dataclass(frozen=True, slots=True)
class PartRun:
    """A part of the charts: its measured cells, and the seconds since the start at which it began and ended."""

    measured: int
    began_s: float
    ended_s: float


def table(import_times: float = 1.0) -> list[dict[str, Any]]:
    """The parts of a cell, of which the imports take so many times as long as simulated_card.toml says."""
    document = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    parts: list[dict[str, Any]] = document["part"]
    for part in parts:
        if "group" in part:
            part["contenders"] = document["group"][part["group"]]
        if part["name"] == IMPORT:
            part["seconds"] *= import_times
    return parts


def simulate(minutes: float, into: Path, parts: Sequence[Mapping[str, Any]]) -> dict[str, PartRun]:
    """Run the charts with these parts of a cell. Returns the parts of the charts that began, by name."""
    found: dict[str, PartRun] = {}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        Path(home, PARTS).write_text(json.dumps(parts))

        def run(command: Sequence[str], most_s: float) -> int:
            python, _, _, *arguments = command
            began_s = time.monotonic() - started
            status = charts.run_for([python, "-m", "benchmarks.simulated_run", home, *arguments], most_s)
            ended_s = time.monotonic() - started
            folder = Path(command[command.index("--output") + 1])
            measured = sum(record.outcome.measured for record in reading.read(folder).records)
            found[folder.name] = PartRun(measured, began_s, ended_s)
            return status

        charts.measure(minutes, into, ["--env", "current"], run)
    return found


def planned() -> dict[str, int]:
    """The number of cells of each part of the charts."""
    loaded = config.load(charts.CONFIG, default_threads=1)
    works = config.expand(loaded, discover([]))
    found = {}
    for name, part in charts.PARTS.items():
        protocol = loaded.with_protocol(memory_trials=part.memory_trials).protocol
        found[name] = len(cells([*filter(selection.parse(part.only), works)], protocol))
    return found


def main(minutes: float, into: Path | None) -> int:
    """Simulate both hosts, and show what they measured. Returns 1 if the first one does not measure all cells."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(HOSTS)) as threads:
        places = [(into or Path(folder)) / f"host-{number}" for number in range(1, len(HOSTS) + 1)]
        found = list(threads.map(simulate, [minutes] * len(HOSTS), places, map(table, HOSTS.values())))
    counts = planned()
    for host, parts in zip(HOSTS, found, strict=True):
        rows = []
        for name, count in counts.items():
            part = parts.get(name)
            times = (part.began_s, part.ended_s, 60 * minutes - part.ended_s) if part else ()
            seconds = [f"{each:.0f}" for each in times] or ["-"] * 3
            rows.append([name, str(count), str(part.measured if part else 0), *seconds])
        show(f"The charts in {minutes:g} minutes on a simulated card, {host}", COLUMNS, rows, NOTES)
    return int({name: part.measured for name, part in found[0].items()} != counts)
