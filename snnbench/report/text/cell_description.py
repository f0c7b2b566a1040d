"""The text of one cell in full: its outcome, its checks and its measurements."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from snnbench.measures.probes.levels import WORDS
from snnbench.recording.drift import DRIFTED
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.report.wording import heading
from snnbench.units import MIB
from snnbench.worker.contention import others_cpus
from snnbench.worker.durations import Summary, median_ns, pass_ns, summarise

SINGLE = {
    "fresh_ns": "on content in another order",
    "drawn_ns": "on content drawn anew",
}


def line(recording: Recording, record: Record) -> str:
    """A cell in one line."""
    name = f"{record.cell}  {record.label}, {heading(record.case)}, {record.measure} {record.trial}"
    return f"{name}: {record.outcome} ({recording.name})"


def lines(recording: Recording, record: Record) -> Iterator[str]:
    """All lines on a cell, without raw durations and the worker's output."""
    yield f"cell {record.cell} of {recording.folder}"
    yield f"{record.label} {record.version or ''}, {record.measure} {record.trial}: {record.outcome}"
    yield heading(record.case)
    yield f"on {recording.model or 'an unknown machine'}, started {record.started}" + (
        f", the worker lived {record.wall_s:g} s" if record.wall_s is not None else ""
    )
    yield f"adapter {record.adapter or 'unknown'}, environment {record.environment or 'unknown'}"
    if record.flags:
        yield f"flags: {' '.join(record.flags)}"
    yield from _attempts(recording, record)
    yield from (f"check {name}: {_check(check)}" for name, check in record.checks.items())
    yield from (f"{phase}: {_timing(timing)}" for phase, timing in record.phases.items())
    if record.memory:
        yield f"memory of {record.memory['phase']}: static {record.memory['static_bytes'] / MIB:.4g} MiB"
        for memory in ("host", "device"):
            sizes = {name: value for name, value in record.memory.get(memory, {}).items() if value is not None}
            if sizes:
                listed = ", ".join(
                    f"{name.removesuffix('_bytes')} {value / MIB:.4g} MiB" for name, value in sizes.items()
                )
                yield f"  {memory}: {listed}"
    if record.settings:
        yield f"settings: {json.dumps(record.settings)}"


def _attempts(recording: Recording, record: Record) -> Iterator[str]:
    """For a disturbed cell: the number of this attempt, and the outcomes of the others."""
    others = [other for other in recording.attempts if other.cell == record.cell]
    if not others:
        return
    yield f"attempt {record.attempt + 1} of {1 + len(others)} counts: {_circumstances(record)}"
    for other in others:
        times = [f"{phase} {median_ns(timing) / 1e6:.4g} ms" for phase, timing in other.phases.items()]
        yield f"  attempt {other.attempt + 1} does not: {', '.join([_circumstances(other), *times])}"


def _circumstances(record: Record) -> str:
    if not record.phases:
        return str(record.outcome)
    moved = ", the machine drifted" if DRIFTED in record.flags else ""
    return f"others took at least {others_cpus(record.phases):.2g} CPUs{moved}"


def samples(record: Record) -> Iterator[str]:
    """Every raw duration, in nanoseconds of a repetition, and the instructions retired meanwhile."""
    for phase, timing in record.phases.items():
        yield f"{phase}: {timing['passes']} passes a repetition, first call {timing['first_call_ns']} ns"
        yield f"  warm-up: {' '.join(map(str, timing['warmup_ns']))}"
        yield f"  repetitions: {' '.join(map(str, timing['repetitions_ns']))}"
        if timing.get("device_ns"):
            yield f"  by the device's clock: {' '.join(map(str, timing['device_ns']))}"
        if timing.get("instructions"):
            yield f"  instructions: {' '.join(map(str, timing['instructions']))}"
        if timing.get("repeated_ns"):
            yield f"  repeated passes beside those on new content: {' '.join(map(str, timing['repeated_ns']))}"
        if timing.get("contested_ns"):
            contested = " ".join(map(str, timing["contested_ns"]))
            yield f"  before passes on new content took longer, {timing['contested_passes']} passes each: {contested}"
        for name, words in SINGLE.items():
            if timing.get(name):
                yield f"  single passes {words}: {' '.join(map(str, timing[name]))}"
    for name, peak in record.peaks.items():
        yield f"peak {name}: {peak['passes']} passes a repetition: {' '.join(map(str, peak['repetitions_ns']))}"
    for name, probe in record.probes.items():
        for when, look in zip(("before", "after"), probe["looks_ns"], strict=False):
            yield f"probe of {WORDS[name]}, {when}: {' '.join(map(str, look))}"


def _check(check: Mapping[str, Any]) -> str:
    errors = ", ".join(f"{name} {error:.2g}" for name, error in check["gradient_errors"].items())
    rate = f", {check['rate']:.3g} spikes a step" if "rate" in check else ""
    sentence = f"{check['differing']} of {check['compared']} spikes differ{rate}"
    return "; ".join([sentence + (f", gradients off by {errors}" if errors else ""), *check["complaints"]])


def _timing(timing: Mapping[str, Any]) -> str:
    summary: Summary = summarise(pass_ns(timing))
    floor = f", {timing['times_floor']:.3g} times the floor" if "times_floor" in timing else ""
    return (
        f"{median_ns(timing) / 1e6:.4g} ms a pass "
        f"({summary.low / 1e6:.4g}-{summary.high / 1e6:.4g}){floor}, "
        f"{summary.count} repetitions of {timing['passes']} pass{'es' * (timing['passes'] != 1)}, "
        f"first call {timing['first_call_ns'] / 1e6:.4g} ms{_instructions(timing)}"
    )


def _instructions(timing: Mapping[str, Any]) -> str:
    """The instructions that a pass retired, if the processor counts them."""
    if not timing.get("instructions"):
        return ""
    return f", {median_ns(timing, 'instructions') / 1e6:.4g} million instructions a pass"
