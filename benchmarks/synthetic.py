"""Recordings of made-up numbers, as large as wanted: for benchmarks, and to look at what many cells become.

    python -m benchmarks.synthetic FOLDER [--cells 10000] [--seed 0] [--slower 0.1]

A contender's time is its factor of a power law of the case's size, with spread between trials and between repetitions
of one; every record has all that a real one holds, and is written as a run writes it, but for the wait for the disk.
"""

import argparse
import json
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.basecase import CASE
from snnbench.cases import outcome
from snnbench.cases.case import Case
from snnbench.digest import digest
from snnbench.recording.reading import CONFIG, ENVIRONMENTS, MACHINE, RECORDS
from snnbench.recording.record import Record

PHASES = {"inference": 0.35, "forward": 0.45, "backward": 0.6, "train": 1.0}
"""And the share of a training pass that each takes."""
CONTENDERS = tuple(f"{library}/{variant}" for library in "abcde" for variant in ("plain", "compile"))
TRIALS, MEMORY_TRIALS, REPETITIONS = 5, 3, 15
BETWEEN_TRIALS, WITHIN_TRIALS = 0.02, 0.03
"""Standard deviations of the logarithm of a time."""
PROTOCOL = {"phases": [*PHASES], "trials": TRIALS, "memory_trials": MEMORY_TRIALS, "repetitions": REPETITIONS}
CHECK = {
    "compared": 76800,
    "differing": 0,
    "unexplained": 0,
    "first_wrong": "",
    "rate": 0.0992,
    "expected_rate": None,
    "gradient_errors": {"weight": 3.1e-7, "bias": 2.9e-7, "input": 4.1e-7},
    "cosines": {"weight": 1.0, "bias": 1.0, "input": 1.0},
    "complaints": [],
    "correct": True,
}


def write(folder: Path, cells: int, seed: int = 0, slower: float = 0.0) -> None:
    """Make a recording of so many records in `folder`, all times longer by the share `slower`."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    config = {"config": {"name": "synthetic", "protocol": PROTOCOL}, "baseline": CONTENDERS[0], "snnbench": "0.1.0"}
    machine = {"model": "a machine that is none", "kernel": "6.1"}
    packages = {"torch": "2.13.0", "numpy": "2.4.6"}
    for name, content in ((CONFIG, config), (MACHINE, machine), (ENVIRONMENTS, {"e": packages})):
        (folder / name).write_text(json.dumps(content, indent=2), encoding="utf-8")
    with (folder / RECORDS).open("w", encoding="utf-8") as stream:
        for _, record in zip(range(cells), _records(random, 1 + slower), strict=False):
            stream.write(record.encode())


def _records(random: np.random.Generator, factor: float) -> Any:
    kinds = [("time", trial) for trial in range(TRIALS)] + [("memory", trial) for trial in range(MEMORY_TRIALS)]
    for number in count():
        case = _case(number)
        for index, name in enumerate(CONTENDERS):
            train_ns = factor * 1e3 * (1 + index / 4) * case.updates**0.7
            for measure, trial in kinds:
                yield _record(random, case, name, measure, trial, train_ns)


def _case(number: int) -> Case:
    """The so manieth case: sizes go round, then seeds go up."""
    sizes = list(product((64, 128, 256, 512, 1024), (1, 16, 64), (50, 100, 500)))
    neurons, batch, time_steps = sizes[number % len(sizes)]
    return CASE.with_(neurons=neurons, batch=batch, time_steps=time_steps, threads=2, seed=1 + number // len(sizes))


def _record(random: np.random.Generator, case: Case, name: str, measure: str, trial: int, train_ns: float) -> Record:
    library, variant = name.split("/")
    measured: dict[str, Any] = {}
    if measure == "time":
        measured["phases"] = {phase: _phase(random, share * train_ns) for phase, share in PHASES.items()}
        peak = {"work": 209715200, "passes": 2, "first_call_ns": 1695918, "repetitions_ns": [2081761] * 15}
        measured["peaks"] = {"current": peak, "weight_gradient": peak, "copy": peak}
    else:
        peak_bytes = round(case.updates * 12 * random.lognormal(0, 0.001))
        host = {"before_bytes": 10**8, "peak_bytes": peak_bytes, "retained_bytes": peak_bytes // 2}
        measured["memory"] = {"phase": "train", "static_bytes": 10**6, "host": host}
    return Record(
        cell=digest([name, measure, trial, case.as_dict()]),
        library=library,
        variant=variant,
        trial=trial,
        measure=measure,
        case=case,
        outcome=outcome.measured("exact"),
        version="1.0.0",
        adapter="0123456789abcdef",
        environment="e",
        checks={"exam-1": CHECK, **{f"spot-{phase}": CHECK for phase in PHASES}},
        settings={"torch": "2.13.0", "device": "cpu", "matmul_precision": "ieee", "threads": 2, "cpus": [0, 1]},
        started="2026-11-21T15:41:25+00:00",
        wall_s=5.0,
        **measured,
    )


def _phase(random: np.random.Generator, median_ns: float) -> dict[str, Any]:
    trial_ns = median_ns * random.lognormal(0, BETWEEN_TRIALS)
    passes = max(1, round(1e7 / trial_ns))
    repetitions = passes * trial_ns * random.lognormal(0, WITHIN_TRIALS, REPETITIONS)
    floor_ns = round(median_ns / 4)
    return {
        "first_call_ns": round(50 * trial_ns),
        "warmup_ns": [round(2 * trial_ns), round(trial_ns)],
        "passes": passes,
        "repetitions_ns": repetitions.round().astype(int).tolist(),
        "device_ns": [],
        "compilations": 0,
        "contention": {"foreign_cpus": 0.01, "stolen_cpus": 0.0, "own_cpus": 1.9},
        "flops": 209715200,
        "least_bytes": 400000,
        "floor_ns": floor_ns,
        "times_floor": trial_ns / floor_ns,
    }


def main() -> None:
    """Make one recording."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slower", type=float, default=0.0, help="0.1: all times a tenth longer")
    given = parser.parse_args()
    write(given.folder, given.cells, given.seed, given.slower)


if __name__ == "__main__":
    main()
