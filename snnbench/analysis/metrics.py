"""Metrics: the numbers of a record, and the key of its contender and case."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from snnbench.recording.record import Record
from snnbench.worker.durations import median_ns


def incorrect(records: Iterable[Record]) -> set[tuple[Any, ...]]:
    """(case, contender) pairs with an incorrect cell."""
    return {pair(record) for record in records if record.outcome.kind == "incorrect"}


def common(record: Record) -> list[dict[str, Any]]:
    """The checks of a deviating contender against the case's own neuron, in networks of one layer."""
    return [check for name, check in record.checks.items() if name.startswith("common-") and check["compared"]]


def gradient_errors(checks: Iterable[Mapping[str, Any]]) -> list[float]:
    """The relative errors of all gradients that these checks compared."""
    return [error for check in checks for error in check["gradient_errors"].values()]


def pair(record: Record) -> tuple[Any, ...]:
    """(case, contender), the key of both within a recording."""
    return record.case, record.label


def metrics(record: Record) -> Iterator[tuple[str, str, str, float]]:
    """(phase, metric, unit, value) of one measured record."""
    for phase, timing in record.phases.items():
        yield phase, "time", "ns", median_ns(timing)
        if timing.get("device_ns"):
            yield phase, "device_time", "ns", median_ns(timing, "device_ns")
        if "floor_ns" in timing:  # not in recordings of schema 1
            yield phase, "floor", "ns", timing["floor_ns"]
            yield phase, "times_floor", "ratio", timing["times_floor"]
        if timing.get("instructions"):
            yield phase, "instructions", "count", median_ns(timing, "instructions")
        yield phase, "first_call", "ns", timing["first_call_ns"]
    if record.memory:
        phase = record.memory["phase"]
        yield phase, "static", "bytes", record.memory["static_bytes"]
        for memory in ("host", "device"):
            for name, value in record.memory.get(memory, {}).items():
                if value is not None:
                    yield phase, f"{memory}_{name.removesuffix('_bytes')}", "bytes", value
