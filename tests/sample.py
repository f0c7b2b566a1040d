"""A recording made by hand that holds one of everything: sizes swept, two devices, failures, deviations, flags."""

from collections.abc import Iterator

from snnbench.cases.case import Case
from snnbench.cases.outcome import Outcome
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from tests.fakes import CASE
from tests.recordings import MIB, failed, record, recording, skipped, timed

BASE = CASE.with_(neurons=64, batch=16, time_steps=100, threads=2)
ZERO = {"reset": "zero", "detach_reset": True}
NEURONS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
STEPS = (25, 50, 100, 200, 400)
SPEEDS = {"alpha/loop": (9.0, 2.0), "beta": (4.0, 1.4), "gamma/compile": (1.0, 1.0), "delta/wide": (2.0, 1.2)}
"""Contender -> (the ms that a pass takes at any size, the factor on the ms that grow with the size)."""
STEADY = (1.0, 1.01, 0.99, 1.03, 0.98, 1.0, 1.02)
"""Repetitions by their median."""


def sample(trials: int = 3, neurons: tuple[int, ...] = NEURONS, steps: tuple[int, ...] = STEPS) -> Recording:
    """The whole recording, with the baseline alpha/loop."""
    return recording(*_records(trials, neurons, steps), name="sample", baseline="alpha/loop", model="two devices")


def _records(trials: int, neurons: tuple[int, ...], steps: tuple[int, ...]) -> Iterator[Record]:
    for device in ("cpu", "cuda"):
        for changes in ({}, ZERO):
            profile = BASE.with_(device=device, **changes)
            for case in (profile.with_(neurons=n) for n in neurons):
                yield from _case(case, trials)
    for case in (BASE.with_(neurons=512, time_steps=t) for t in steps):
        yield from _case(case, trials) if case.time_steps != BASE.time_steps else ()


def _case(case: Case, trials: int) -> Iterator[Record]:
    fast = 8.0 if case.device == "cuda" else 1.0
    work_ms = (case.neurons / 64) ** 1.6 * case.time_steps / 100 / fast
    for name, (constant, factor) in SPEEDS.items():
        if name == "delta/wide" and case.neurons > 2048:
            yield failed(
                name, "oom-device" if case.device == "cuda" else "oom-host", "inferred: it already ran out", case=case
            )
            continue
        if name == "beta" and case.profile == "zero":
            yield skipped(name, "unsupported", "subtracts only", case=case)
            continue
        if name == "gamma/compile" and case.neurons == 1024 and case.device == "cpu":
            yield failed(name, "timeout", "no reply within 9 s; killed", case=case, log="warming up\nstill compiling\n")
            continue
        quadratic = (case.time_steps / 100) ** 2 if name == "alpha/loop" else case.time_steps / 100
        for trial in range(trials):
            noise = 1 + 0.04 * ((trial * 7 + case.neurons) % 5 - 2)
            train = noise * (constant * case.time_steps / 100 + factor * work_ms)
            times = {"train": train, "forward": train * 0.4, "backward": train * 0.55 * quadratic}
            made = timed(
                name,
                trial,
                case,
                first_call_ms=900 if "compile" in name else train * 1.3,
                floors_ms={"train": work_ms / 3 + 0.05},
                flags=["contended"] if trial == 1 and name == "beta" else [],
                **times,
            )
            for phase, ms in times.items():
                made.phases[phase]["repetitions_ns"] = [round(2e6 * ms * share) for share in STEADY]
            yield made
        yield _weighed(name, case, factor)
    yield timed("epsilon/defaults", 0, case, train=3 + work_ms, outcome=OTHER, checks=CHECKS)
    yield failed("zeta", "incorrect", "exam: 3 of 100 spikes differ", case=case, log="")


OTHER = Outcome(status="measured", verdict="deviates", deviation="fires a step late")
CHECK = {"compared": 400, "differing": 20, "rate": 0.25, "expected_rate": 0.125, "complaints": []}
CHECKS = {"common-train": CHECK | {"cosines": {"weight": 0.75}, "gradient_errors": {"weight": 0.5}}}


def _weighed(name: str, case: Case, factor: float) -> Record:
    peak = round(case.neurons * case.batch * case.time_steps * 12 * factor)
    held = {"before_bytes": 0, "peak_bytes": peak, "retained_bytes": peak // 2}
    peaks = {"host": held} | ({"device": held} if case.device == "cuda" else {})
    memory = {"phase": "train", "static_bytes": case.neurons**2 * 4 + MIB, **peaks}
    return record(name, "memory", case=case, memory=memory, wall_s=1.5)
