"""Whether the yardstick's low-memory variant has the least host memory of all exact contenders, at every size.

    python -m benchmarks memory --neurons 16 512 --time-steps 25 500

Each contender does a training pass in a process of its own, as a cell of memory in a recording does, and its answer is
checked. The number is the peak of resident memory during the first pass, above parameters, input and cotangent: the
median of the trials. Processes run side by side, because no clock counts. With --recording the same command continues
after an interruption. Exits with 1 if an exact contender that is not ours has a lower peak than the variant.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median_low

from benchmarks.basecase import CASE
from benchmarks.outcome import show
from snnbench.adapter import contender
from snnbench.adapter.contender import Work
from snnbench.adapter.discovery import discover
from snnbench.cases.case import PROFILES, Case
from snnbench.environments.interpreters import interpreters
from snnbench.plan.cell import Cell
from snnbench.plan.config import Protocol
from snnbench.recording.reading import read
from snnbench.recording.record import Record
from snnbench.recording.writer import append
from snnbench.run.executor import Executor
from snnbench.run.setup import RunContext, Setup
from snnbench.run.store import InFolder
from snnbench.units import MIB
from snnbench.worker.messages import Note

OURS, DEFAULT = "fused/cpu-lowmem", "fused/cpu"
LEFT_OUT = ["*", "!*/compile", "!*/amp", "!*/defaults"]
"""A compiler takes half an hour to unroll 500 steps, and the others do other work."""
PROTOCOL = Protocol(
    phases=("train",),
    trials=1,
    memory_trials=1,
    warmup_passes=1,
    repetitions=3,
    min_repetition_ms=1.0,
    max_phase_seconds=1.0,
    timeout_seconds=600.0,
    seed=0,
)


class Shown:
    """Shows each cell as it ends."""

    def start(self, cell: Cell) -> None:
        """Do nothing."""

    def end(self, cell: Cell, record: Record) -> None:
        """Print the cell and its status."""
        name, case = contender.label(cell.library, cell.variant), cell.case
        print(f"  {name}, {case.profile}, N={case.neurons}, T={case.time_steps}: {record.status}", file=sys.stderr)

    def note(self, cell: Cell, note: Note) -> None:
        """Do nothing: no contender fills a cache."""

    def add(self, cells: Sequence[Cell]) -> None:
        """Do nothing: no cell of memory is measured again."""


def main() -> int:
    """Measure every case, print a table, and return 1 if another contender needs less."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neurons", type=int, nargs="+", default=[16, 64, 128, 256, 512, 2048])
    parser.add_argument("--time-steps", type=int, nargs="+", default=[25, 100, 500])
    parser.add_argument("--profiles", nargs="+", default=["subtract", "zero"], choices=tuple(PROFILES))
    parser.add_argument("--libraries", nargs="+", default=LEFT_OUT, help="patterns: norse, norse/box, !*/compile")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--trials", type=int, default=1, help="processes for each contender and case; 1 if left out")
    parser.add_argument("--recording", type=Path, metavar="DIR", help="keep the records here; another run continues")
    options = parser.parse_args()
    cases = []
    for profile, time_steps, neurons in product(options.profiles, options.time_steps, options.neurons):
        reset, detach_reset = PROFILES[profile]
        rule = {"reset": reset, "detach_reset": detach_reset}
        cases.append(CASE.with_(neurons=neurons, time_steps=time_steps, threads=options.threads, **rule))
    with tempfile.TemporaryDirectory() as folder:
        records = measured(cases, options.libraries, options.trials, options.recording or Path(folder) / "recording")
    peaks = peaks_of(records)
    rows = [row(case, peaks.get(case, {})) for case in cases]
    columns = ("case", f"{OURS} MiB", f"{DEFAULT} MiB", "least other", "its MiB", f"its ratio to {OURS}")
    refused = {
        f"{contender.label(each.library, each.variant)}: {each.outcome.reason}"
        for each in records
        if each.outcome.reason
    }
    show(f"Host memory of a training pass, B={CASE.batch}, {options.threads} threads", columns, rows, sorted(refused))
    return 1 if any(float(ratio) < 1 for *_, ratio in rows if ratio != "-") else 0


def measured(cases: Sequence[Case], patterns: Sequence[str], trials: int, folder: Path) -> list[Record]:
    """The records of all contenders that the patterns name, and of the two of ours."""
    known = discover()
    full = [pattern if "/" in pattern else f"{pattern}/*" for pattern in patterns]
    wanted, wrong = contender.find_all([OURS, DEFAULT, *full], known)
    if wrong:
        raise SystemExit(str(wrong[0]))
    able = [(library, variant) for library, variant in wanted if not known[library].variants[variant].deviation]
    cells = [
        Cell(case, *each, trial, "memory")
        for case, each, trial in product(cases, able, range(trials))
        if not known[each[0]].variants[each[1]].refusal(case)
    ]
    works = [Work(cell.case, cell.library, cell.variant) for cell in cells]
    pythons = interpreters(works, known, managed=True, cuda=False, say=lambda line: None)
    protocol = PROTOCOL.model_copy(update={"memory_trials": trials})
    run = RunContext(
        {"": Setup(known, pythons)}, protocol, "here", os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    )
    with append(folder, {"identity": "memory"}, {}) as writer:
        Executor(run, InFolder(writer), Shown()).execute(cells)
    keys = {run.key(cell) for cell in cells}
    return [record for record in read(folder).records if record.cell in keys]


def peaks_of(records: Sequence[Record]) -> dict[Case, dict[str, int]]:
    """The peak of each exact contender in each case, in bytes: the median of its trials, the lower one of two."""
    trials: dict[Case, dict[str, list[int]]] = {}
    for each in records:
        if each.outcome.verdict == "exact":
            name = contender.label(each.library, each.variant)
            trials.setdefault(each.case, {}).setdefault(name, []).append(each.memory["host"]["peak_bytes"])
    return {case: {name: median_low(peaks[name]) for name in peaks} for case, peaks in trials.items()}


def row(case: Case, peaks: dict[str, int]) -> tuple[str, ...]:
    """A row of the table. Raises SystemExit if a variant of ours has no peak."""
    if missing := {OURS, DEFAULT} - set(peaks):
        raise SystemExit(f"no peak of {' and '.join(sorted(missing))}")
    ours, default = peaks[OURS], peaks[DEFAULT]
    others = {name: peak for name, peak in peaks.items() if not name.startswith("fused")}
    name = min(others, key=lambda each: others[each], default="-")
    numbers = (f"{others[name] / MIB:.3g}", f"{others[name] / ours:.2f}") if others else ("-", "-")
    return (
        f"{case.profile}, N={case.neurons}, T={case.time_steps}",
        f"{ours / MIB:.3g}",
        f"{default / MIB:.3g}",
        name,
        *numbers,
    )
