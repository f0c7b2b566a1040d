"""Metrics: the numbers of a record, and the key of its contender and case."""

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from snnbench import measures
from snnbench.recording.record import Record
from snnbench.worker.durations import median_ns


def incorrect(records: Iterable[Record]) -> set[tuple[Any, ...]]:
    """(case, contender) pairs with an incorrect cell."""
    return {pair(record) for record in records if record.outcome.kind == "incorrect"}


def distance_checks(record: Record) -> list[dict[str, Any]]:
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
        yield phase, "first_call", "ns", timing.get("build_ns", 0) + timing["first_call_ns"]
        for half in measures.harnesses().values():
            yield from ((phase, *metric) for metric in half.metrics(timing))
        yield from _of_epochs(phase, timing)
    if record.memory:
        phase = record.memory["phase"]
        yield phase, "static", "bytes", record.memory["static_bytes"]
        for memory in ("host", "device"):
            for name, value in record.memory.get(memory, {}).items():
                if value is not None:
                    yield phase, f"{memory}_{name.removesuffix('_bytes')}", "bytes", value


def _of_epochs(phase: str, timing: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    """The parts of an epoch, those of its loader's processes, and the loss and the accuracy of the last epoch."""
    for part, spent_ns in timing.get("parts_ns", {}).items():
        yield phase, f"part_{part}", "ns", median(spent_ns)
    for part, spent_ns in timing.get("loader_ns", {}).items():
        yield phase, f"loader_{part}", "ns", median(spent_ns)
    if timing.get("losses"):
        yield phase, "loss", "nats", timing["losses"][-1]
        yield phase, "accuracy", "ratio", timing["accuracies"][-1]
