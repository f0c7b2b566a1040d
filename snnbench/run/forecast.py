"""The forecast of a config: the memory and the time of its cells before they run, and those that will not fit.

    time           that of recorded cells on this model of machine, scaled as run/estimate.py does; of a cell on a card
                   without such a recording, that on other cards
    host memory    the process before a pass, the arrays of the case on its device and in the harness's own copy, a peak
    device memory  the framework's context, the arrays of the case, a peak

The arrays are the workload's static numbers and the cotangent, so they are known without a recording. The peak is that
of the contender's recorded case with the nearest least bytes, and grows as these do. Whether a case can prove anything
is not asked: the reference needs a tenth of a second for each, and the run asks before a library runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log, prod
from typing import Any

from snnbench import workloads
from snnbench.adapter.contender import Contender, Work, label
from snnbench.adapter.declaration import Adapter
from snnbench.analysis import race
from snnbench.cases import nodes
from snnbench.cases.case import Case
from snnbench.plan.cell import Cell, cells
from snnbench.plan.config import Protocol
from snnbench.recording.reading import Recording
from snnbench.recording.record import recorded
from snnbench.run.estimate import Estimate
from snnbench.units import GIB
from snnbench.worker.floor import SIZES_BYTES, least_bytes

SKIPPED = ("unsupported", "unavailable")
TOO_LARGE = ("oom-host", "oom-device")
HARNESS_BYTES = SIZES_BYTES["float32"]
"""The harness draws every array in float32."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of this machine: bytes on the host and on its smallest card, and the CPUs that a worker may use."""

    host_bytes: float
    device_bytes: float | None
    has_cuda: bool
    usable_cpus: int

    @classmethod
    def of(cls, protocol: Protocol, facts: Mapping[str, Any], available_bytes: int, has_cuda: bool) -> "Limits":
        """The limits under a protocol; `facts` are those of machine.json, `available_bytes` is free host memory."""
        memory, given = facts["memory"], protocol.memory_limit_gib
        worker = (memory["limit_bytes"] or memory["total_bytes"] or inf) if given is None else given * GIB
        cards = [card["memory_bytes"] for card in facts["gpus"] if card["memory_bytes"]]
        return cls(min(worker, available_bytes), min(cards, default=None), has_cuda, facts["cpu"]["usable_cpus"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A contender in a case. `expected` is "ok", or the kind of outcome that is to be expected.

    `memory_bytes` are those of the arrays alone, a lower bound, without a recording of the contender's memory.
    `seconds` is the time of its cells together; None if unknown. If `is_elsewhere`, it was recorded on another card.
    """

    work: Work
    cells: int
    expected: str = "ok"
    reason: str = ""
    memory_bytes: float = 0.0
    is_lower_bound: bool = False
    seconds: float | None = 0.0
    is_elsewhere: bool = False

    @property
    def contender(self) -> str:
        """The contender's name."""
        return label(self.work.library, self.work.variant)


@dataclass(frozen=True, slots=True)
class Peak:
    """The recorded memory of a pass: its phase, the peak, and the bytes of the process before its arrays exist."""

    case: Case
    phase: str
    peak_bytes: float
    start_bytes: float


def forecast(
    works: Sequence[Work],
    protocol: Protocol,
    adapters: Mapping[str, Adapter],
    recordings: Iterable[Recording],
    model: str,
    limits: Limits,
) -> list[Forecast]:
    """The forecast of each work on this model of machine; memory is from recordings of any machine.

    Of a race it has the first trials, which every contender has.
    """
    plan = race.due(works, (), protocol) if protocol.is_race else cells(works, protocol)
    by_work = defaultdict[Work, list[Cell]](list)
    for cell in plan:
        by_work[Work(cell.case, cell.library, cell.variant)].append(cell)
    times, peaks = _learned(plan, recordings, model)

    def of(work: Work) -> Forecast:
        count = len(by_work[work])
        kind, reason = _hindrance(work, adapters[work.library], protocol, limits)
        if kind:
            return Forecast(work=work, cells=count, expected=kind, reason=reason)
        memory_bytes, is_lower_bound = _memory(work, peaks, protocol)
        on_card = work.case.device.startswith("cuda")
        here, elsewhere = times[on_card, True], times[on_card, False]
        each = [here.seconds(cell) for cell in by_work[work]]
        if is_elsewhere := on_card and None in each:
            each = [elsewhere.seconds(cell) for cell in by_work[work]]
        known = [min(seconds, protocol.timeout_seconds) for seconds in each if seconds is not None]
        limit = limits.device_bytes if on_card else limits.host_bytes
        expected = "ok"
        if limit is not None and memory_bytes > limit:
            expected = "oom-device" if on_card else "oom-host"
        elif known and max(known) == protocol.timeout_seconds:
            expected = "timeout"
        return Forecast(
            work=work,
            cells=count,
            expected=expected,
            memory_bytes=memory_bytes,
            is_lower_bound=is_lower_bound,
            seconds=sum(known) if len(known) == len(each) else None,
            is_elsewhere=is_elsewhere and len(known) == len(each),
        )

    return [of(work) for work in works]


def arrays_bytes(case: Case, size: int) -> float:
    """Bytes of the numbers that exist before a pass, and of the cotangent, at so many bytes a number."""
    return size * (workloads.of(case).static_values(case) + prod(case.shape))


def _hindrance(work: Work, adapter: Adapter, protocol: Protocol, limits: Limits) -> tuple[str, str]:
    """The kind of skip of a work that cannot run here, and the reason; two empty texts if it can."""
    variant, case = adapter.variants[work.variant], work.case
    if refusal := variant.refusal(case):
        return "unsupported", refusal
    if protocol.phases and variant.inference_only and "inference" not in protocol.phases:
        return "unsupported", f"inference only: {variant.inference_only}"
    if case.device.startswith("cuda") and not limits.has_cuda:
        return "unavailable", "no CUDA device on this machine"
    if (threads := case.cpus(nodes.count())) > limits.usable_cpus:
        return "unavailable", f"{threads} threads on {limits.usable_cpus} CPUs"
    return "", ""


def _learned(
    plan: Sequence[Cell], recordings: Iterable[Recording], model: str
) -> tuple[Mapping[tuple[bool, bool], Estimate], Mapping[Contender, list[Peak]]]:
    """What the recordings tell: seconds of cells, on a card or not and on this model or not, and peaks of memory."""
    times = {(on_card, here): Estimate(plan) for on_card in (False, True) for here in (False, True)}
    peaks = defaultdict[Contender, list[Peak]](list)
    for recording in recordings:
        for record in recording.records:
            if record.status == "measured" and record.wall_s is not None:
                on_card = record.case.device.startswith("cuda")
                times[on_card, recording.model == model].learn(recorded(record), record.wall_s)
            if record.memory and (peak := _peak(record.memory, record.case)):
                peaks[record.library, record.variant].append(peak)
    return times, peaks


def _peak(memory: Mapping[str, Any], case: Case) -> Peak | None:
    on_card = case.device.startswith("cuda")
    measured = memory.get("device" if on_card else "host", {})
    start = measured.get("unaccounted_bytes" if on_card else "before_bytes") or 0
    start -= 0 if on_card else memory["static_bytes"] + arrays_bytes(case, HARNESS_BYTES)
    peak = measured.get("peak_bytes")
    return None if peak is None else Peak(case, memory["phase"], peak, max(0.0, start))


def _memory(work: Work, peaks: Mapping[Contender, list[Peak]], protocol: Protocol) -> tuple[float, bool]:
    """The bytes of a work, and whether they are those of its arrays alone."""
    case, phase = work.case, "inference" if set(protocol.phases) == {"inference"} else "train"
    arrays, least = arrays_bytes(case, SIZES_BYTES[case.dtype]), least_bytes(case, phase)

    def growth(peak: Peak) -> float:
        return least / least_bytes(peak.case, phase)

    alike = [
        peak
        for peak in peaks.get((work.library, work.variant), ())
        if (peak.case.kind, peak.case.device, peak.phase) == (case.kind, case.device, phase)
    ]
    if not alike:
        return arrays, True
    nearest = min(alike, key=lambda peak: abs(log(growth(peak))))
    copy = 0 if case.device.startswith("cuda") else arrays_bytes(case, HARNESS_BYTES)
    return nearest.start_bytes + arrays + copy + nearest.peak_bytes * growth(nearest), False
