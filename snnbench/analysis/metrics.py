"""Metrics: the numbers of a record, and the key of its contender and case."""

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any

from snnbench.recording.record import Record
from snnbench.worker.durations import median_ns, summarise


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
        yield phase, "first_call", "ns", timing.get("build_ns", 0) + timing["first_call_ns"]
        if measured := timing.get("energy"):
            yield phase, "energy", "joules", net_joules(measured)
            yield phase, "idle_power", "watts", idle_watts(measured)
        if pairs := timing.get("without_neurons"):
            yield from _of_neurons(phase, pairs)
        yield from _of_epochs(phase, timing)
    if record.memory:
        phase = record.memory["phase"]
        yield phase, "static", "bytes", record.memory["static_bytes"]
        for memory in ("host", "device"):
            for name, value in record.memory.get(memory, {}).items():
                if value is not None:
                    yield phase, f"{memory}_{name.removesuffix('_bytes')}", "bytes", value


def neuron_shares(pairs: Mapping[str, Any]) -> list[float]:
    """The neuron's share of each pass that was timed beside a pass without neurons."""
    return [1 - without_ns / whole_ns for without_ns, whole_ns in _passes_of(pairs)]


def _passes_of(pairs: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(time without neurons, time) of a pass, in each pair of repetitions."""
    return [
        (without_ns / pairs["passes"], whole_ns / pairs["whole_passes"])
        for without_ns, whole_ns in zip(pairs["repetitions_ns"], pairs["whole_ns"], strict=True)
    ]


def _of_neurons(phase: str, pairs: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    """The neuron's time and share: the medians over pairs, and the interquartile range of the shares."""
    yield phase, "neuron_time", "ns", median(whole_ns - without_ns for without_ns, whole_ns in _passes_of(pairs))
    shares = summarise(neuron_shares(pairs))
    yield phase, "neuron_share", "ratio", median(shares.trials)
    yield phase, "neuron_share_spread", "ratio", shares.high - shares.low


def idle_watts(energy: Mapping[str, Any]) -> float:
    """The power before a measurement of energy, as a record holds it."""
    return float(energy["idle_uj"] / energy["idle_ns"] * 1e3)


def net_joules(energy: Mapping[str, Any]) -> float:
    """The energy of a pass beyond idle power. Noise may put the energy of a small pass below 0."""
    idle_uj = idle_watts(energy) * energy["wall_ns"] / 1e3
    return float((energy["counted_uj"] - idle_uj) / energy["passes"] / 1e6)


def _of_epochs(phase: str, timing: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    """The parts of an epoch, those of its loader's processes, and the loss and the accuracy of the last epoch."""
    for part, spent_ns in timing.get("parts_ns", {}).items():
        yield phase, f"part_{part}", "ns", median(spent_ns)
    for part, spent_ns in timing.get("loader_ns", {}).items():
        yield phase, f"loader_{part}", "ns", median(spent_ns)
    if timing.get("losses"):
        yield phase, "loss", "nats", timing["losses"][-1]
        yield phase, "accuracy", "ratio", timing["accuracies"][-1]
