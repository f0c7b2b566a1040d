"""Measures: what is measured beside the times of the phases. Each is a folder, and nothing else names it.

    NAME/worker.py   measures, in the environment of a library (snnbench/worker/measure.py)
    NAME/harness.py  its key in a protocol, its part of a record, its rule for `check`, its metrics
    NAME/report.py   its column, its tables and its section of a page (snnbench/report/measure.py)

A measure without one of these files has no such half. docs/tutorials/add-a-measure.md adds a measure.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

Metric = tuple[str, str, float]
"""(name, unit, value) of a phase."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A metric, named as its measure, by which `rank` can order contenders; `less` is better, in these words."""

    unit: str
    plural: str
    slower: str
    faster: str


@dataclass(frozen=True, slots=True)
class Harness:
    """The harness's half of a measure.

    `is_asked_for` if a protocol has a key of its name, which is false by default; otherwise it is always measured.
    `of_phase` are its keys in a phase of a record, with the types of their values. `rule` says what `check` checks, and
    `complaints(record, schema)` what is wrong in a record of `cells`. `metrics(timing)` are those of a phase.
    """

    is_asked_for: bool = False
    of_phase: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    cells: str = "time"
    complaints: Callable[[Any, int], Iterator[str]] = lambda record, schema: iter(())
    metrics: Callable[[Mapping[str, Any]], Iterator[Metric]] = lambda timing: iter(())
    ranked: Ranked | None = None


@cache
def workers() -> dict[str, ModuleType]:
    """The worker's half of each measure, by name."""
    return _halves("worker")


@cache
def harnesses() -> dict[str, Harness]:
    """The harness's half of each measure, by name."""
    return {name: half.HARNESS for name, half in _halves("harness").items()}


@cache
def reports() -> dict[str, Any]:
    """The report's half of each measure, by name."""
    return {name: half.SHOWN for name, half in _halves("report").items()}


def title(name: str) -> str:
    """The name of a measure in a table or an address."""
    return name.replace("_", "-")


def asked_for() -> list[str]:
    """The measures that a protocol asks for by a key of their name."""
    return [name for name, half in harnesses().items() if half.is_asked_for]


def ranked() -> dict[str, Ranked]:
    """The metrics by which `rank` can order, beside times."""
    return {name: half.ranked for name, half in harnesses().items() if half.ranked}


def _halves(half: str) -> dict[str, ModuleType]:
    files = sorted(Path(__file__).parent.glob(f"*/{half}.py"))
    return {path.parent.name: import_module(f"{__name__}.{path.parent.name}.{half}") for path in files}
