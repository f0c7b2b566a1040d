"""The recordings that the documentation shows, by name or as the newest of a config, held to the words of a page."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from snnbench.analysis.results import Result, results_by_case
from snnbench.cases.case import Case
from snnbench.recording import reading
from snnbench.recording.reading import Recording

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


@cache
def recording(name: str) -> Recording:
    """The recording in this folder of results/."""
    return reading.read(RESULTS / name)


def newest(config: str) -> Recording:
    """The newest recording of a config. Raises ValueError if the config has no recording."""
    names = [path.parent.name for path in RESULTS.glob(f"*_{config}_*/records.jsonl")]
    if not names:
        raise ValueError(f"results/ has no recording of {config}")
    return recording(max(names))


@cache
def results(name: str) -> dict[tuple[Case, str], Result]:
    """The results of a recording by case and contender."""
    by_case = results_by_case(recording(name).records)
    return {(case, result.contender): result for case, group in by_case.items() for result in group}


def time_ns(result: Result, phase: str = "train") -> float:
    """The median time of a phase."""
    return float(result.summaries[phase, "time"].median)


def source(recording: Recording, command: str = "report") -> str:
    """The recording and its machine, and the command that shows its numbers."""
    return f"\n\nRecorded on {recording.model}: `snnbench {command} results/{recording.name}`.\n"


def ranked(config: str, profile: str) -> Iterator[tuple[Case, list[Result]]]:
    """The cases of a profile in the newest recording of a config, with the exact results that have a training time."""
    for case, results in results_by_case(newest(config).records).items():
        timed = [result for result in results if result.verdict == "exact" and ("train", "time") in result.summaries]
        if case.profile == profile and timed:
            yield case, timed


def exact(known: dict[tuple[Case, str], Result]) -> bool:
    """Whether every contender is exact in every case."""
    return all(result.verdict == "exact" for result in known.values())


def benchmark(name: str, machine: str = "epyc-2cpu") -> list[dict[str, Any]]:
    """The tables of a recorded benchmark."""
    path = ROOT / "benchmarks" / "outcomes" / f"{name}_{machine}.json"
    tables: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["tables"]
    return tables


def require(holds: bool, words: str) -> None:
    """Raises ValueError if a recording does not bear out the words that a page has beside its numbers."""
    if not holds:
        raise ValueError(f"the recording does not bear out: {words}")
