"""Records and recordings made by hand, with numbers that are easy to reckon with."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from snnbench.adapter.declaration import ONLY_VARIANT
from snnbench.cases.case import Case
from snnbench.cases.outcome import Outcome
from snnbench.digest import digest
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.report.text import recording_tables
from snnbench.report.text.markdown import markdown
from tests.fakes import CASE

MIB = 1 << 20
PROTOCOL = {"phases": ["train"], "trials": 3, "repetitions": 3, "memory_trials": 1, "seed": 0, "timeout_seconds": 9.0}
EXACT = Outcome(status="measured", verdict="exact")


def record(name: str, measure: str = "time", trial: int = 0, case: Case = CASE, **fields: Any) -> Record:
    """A cell of the contender `library` or `library/variant`, found exact if nothing else is said."""
    library, _, variant = name.partition("/")
    cell = digest([name, measure, trial, case.as_dict()])
    given: dict[str, Any] = {"outcome": EXACT, "version": "1.0", **fields}
    return Record(
        cell=cell,
        library=library,
        variant=variant or ONLY_VARIANT,
        trial=trial,
        measure=measure,
        case=case,
        **given,
    )


def timed(
    name: str,
    trial: int = 0,
    case: Case = CASE,
    first_call_ms: float = 50.0,
    floors_ms: Mapping[str, float] | None = None,
    **fields: Any,
) -> Record:
    """A cell in which a pass of each phase took so many milliseconds: timed("norse", train=3.0, forward=1.0).

    Without `floors_ms`, by phase, as in a recording that knew of no floors.
    """
    phases = {
        phase: {
            "first_call_ns": round(first_call_ms * 1e6),
            "warmup_ns": [],
            "passes": 2,
            "repetitions_ns": [round(2e6 * ms), round(2e6 * ms), round(9e6 * ms)],  # the last is an outlier
            "compilations": 0,
        }
        for phase in ("train", "forward", "backward", "inference")
        if (ms := fields.pop(phase, None)) is not None
    }
    for phase, floor_ms in (floors_ms or {}).items():
        times_floor = phases[phase]["repetitions_ns"][0] / 2e6 / floor_ms
        times = {"floor_ns": round(1e6 * floor_ms), "times_floor": times_floor}
        phases[phase] |= {"flops": 300, "least_bytes": 400, **times}
    return record(name, "time", trial, case, phases=phases, wall_s=1.5, **fields)


def weighed(
    name: str, case: Case = CASE, host_mib: float = 6, device_mib: float | None = None, **fields: Any
) -> Record:
    """A cell with these peaks of a training pass on host and device, and with 2 MiB and 1 MiB retained."""
    memory: dict[str, Any] = {
        "phase": "train",
        "static_bytes": MIB,
        "host": {"before_bytes": 100 * MIB, "peak_bytes": round(host_mib * MIB), "retained_bytes": 2 * MIB},
    }
    if device_mib is not None:
        memory["device"] = {"peak_bytes": round(device_mib * MIB), "retained_bytes": MIB, "used_bytes": None}
    return record(name, "memory", case=case, memory=memory, wall_s=1.5, **fields)


def failed(name: str, kind: str, reason: str, **fields: Any) -> Record:
    """A cell that failed."""
    return record(name, outcome=Outcome(status="failed", kind=kind, reason=reason), **fields)


def skipped(name: str, kind: str, reason: str, **fields: Any) -> Record:
    """A cell that was not tried."""
    return record(name, outcome=Outcome(status="skipped", kind=kind, reason=reason), **fields)


def deviating(name: str, differing: int = 3, **fields: Any) -> Record:
    """A cell of a contender that declares a deviation, with `differing` of 100 spikes elsewhere."""
    check = {"compared": 100, "differing": differing, "gradient_errors": {"weight": 0.02, "bias": 0.01}}
    complaints = [f"{differing} of 100 spikes differ, the first at t=2, b=1, n=2: u=1.01, expected 1, got 0"]
    outcome = Outcome(status="measured", verdict="deviates", deviation="fires a step late")
    return timed(name, outcome=outcome, checks={"exam-1": check | {"complaints": complaints}}, **fields)


def recording(
    *records: Record, name: str = "one", baseline: str = "", model: str = "a laptop", **protocol: Any
) -> Recording:
    """A recording of these records on a machine of this model."""
    config = {"config": {"protocol": PROTOCOL | protocol}, "baseline": baseline}
    return Recording(Path("results") / name, config, {"model": model}, list(records), 0)


def trials(name: str, train_ms: Iterable[float], **fields: Any) -> list[Record]:
    """A cell for each of these times of a training pass, trial after trial."""
    return [timed(name, trial, train=ms, **fields) for trial, ms in enumerate(train_ms)]


def reported(of: Recording, level: int = 2) -> str:
    """What `snnbench report` prints of a recording in a pipe."""
    return markdown(recording_tables.report(of), level)
