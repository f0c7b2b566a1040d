"""The rules for records of epochs: every batch and answer was compared, and all strategies learn the same."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from snnbench.analysis.epochs import LOADER, like_strategies
from snnbench.plan.config import Protocol
from snnbench.recording.record import Record

KINDS = ("content", "losses", "step")
"""The first words of the names of these checks; the second is a phase."""
UNMARKED = 0.1
"""The share of an epoch that its parts may leave out: the loop's own statements, and waiting for the device."""


def is_one(name: str) -> bool:
    """Whether a check is one of epochs."""
    return name.partition("-")[0] in KINDS


def wanted(record: Record) -> list[str]:
    """The checks that a record of epochs has, beside the exam."""
    if not record.phases:
        return ["spot-train"]
    trained = [phase for phase in record.phases if phase != LOADER]
    names = [f"content-{phase}" for phase in record.phases] + [f"losses-{phase}" for phase in trained]
    return names + (["spot-train", "step-train"] if trained else [])


def complaints(name: str, check: Mapping[str, Any], record: Record) -> Iterator[str]:
    """Complaints about a check of epochs: it found a fault, or did not cover every batch."""
    if check["complaints"] or not check["correct"] or check["unexplained"]:
        yield f"found a fault: {'; '.join(check['complaints']) or 'numbers differ'}"
    kind, _, phase = name.partition("-")
    case: Any = record.case
    if kind == "step":
        least = case.batch * case.classes
    else:
        each = case.batch if kind == "content" else case.batch * case.classes + 1
        least = case.batches * each * len(record.phases[phase]["repetitions_ns"])
    if check["compared"] < least:
        yield f"compared {check['compared'] or 'nothing'}, where there are at least {least} numbers"


def durations(record: Record, protocol: Protocol) -> Iterator[str]:
    """Every epoch and all of its parts are there, and each epoch was on samples in a new order."""
    if sorted(record.phases) != sorted(protocol.phases):
        wanted_phases = ", ".join(protocol.phases)
        yield f"phases {', '.join(record.phases) or 'none'}, where the protocol asks for {wanted_phases}"
    for phase, timing in record.phases.items():
        epochs_ns, parts = timing["repetitions_ns"], timing["parts_ns"]
        if len(epochs_ns) != protocol.repetitions or timing["passes"] != 1:
            yield f"{phase}: {len(epochs_ns)} epochs, where the protocol asks for {protocol.repetitions}"
        if timing["fresh_ns"] != epochs_ns:
            yield f"{phase}: an epoch is not among those on samples in a new order"
        if len(timing["warmup_ns"]) != (0 if phase == LOADER else protocol.warmup_passes):
            yield f"{phase}: {len(timing['warmup_ns'])} warm-up steps, not {protocol.warmup_passes}"
        if timing["compilations"]:
            yield f"{phase}: {timing['compilations']} compilations"
        for number, epoch_ns in enumerate(epochs_ns):
            sum_ns = sum(part_ns[number] for part_ns in parts.values())
            if abs(sum_ns - epoch_ns) > UNMARKED * epoch_ns:
                yield f"{phase}: the parts of epoch {number} take {sum_ns} ns, and the epoch {epoch_ns} ns"


def learning(records: Iterable[Record]) -> Iterator[str]:
    """All strategies of one contender, with one order of samples, have the same losses and the same data."""
    for group in like_strategies(records).values():
        for what, values in (
            ("data", {record.settings.get("content") for record in group}),
            ("losses", {record.phases["epoch"].get("losses_digest") for record in group if "epoch" in record.phases}),
        ):
            if len(values) > 1:
                first = group[0]
                yield f"{first.label} at {first.case.sizes()}: the strategies have {len(values)} different {what}"
