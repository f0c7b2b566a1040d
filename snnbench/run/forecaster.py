"""Forecasts: the memory and the time of a config's cells before they run, and which of them will not fit.

    host memory    the process before a pass, and the arrays of the case on its device and in the harness's own copy
    device memory  the framework's context, and the arrays of the case
    both           then the peak of a pass; the backward phase also keeps the graphs of a repetition's other passes

    time of a cell     the rest, and each phase's passes as the worker's timing would run them
    the rest           a recorded cell's time without its passes: the start of the worker, its exam and checks

The arrays are the workload's static numbers and the cotangent, so they are known without a recording. All else is
predicted from recordings (analysis/prediction.py). The rest grows as run/estimate.py says, with the square root of the
neuron updates, unless recordings show how it grows; it is never below the least recorded one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from snnbench import workloads
from snnbench.adapter.contender import Contender, Work
from snnbench.adapter.declaration import Adapter
from snnbench.analysis.prediction import Counted, Evidence, Prediction, Sample, samples
from snnbench.cases import nodes
from snnbench.cases.case import Case
from snnbench.plan.cell import cells
from snnbench.plan.config import Protocol
from snnbench.proof import provable
from snnbench.recording.reading import Recording
from snnbench.run import cell_time
from snnbench.run.forecast import Forecast, Limits, Plan
from snnbench.worker.durations import median_ns
from snnbench.worker.floor import SIZES_BYTES, flops, least_bytes
from snnbench.worker.timed_phase import busy_ns
from snnbench.worker.timing import Budget

REST, START = "rest", "start"
"""Two more metrics of a record: seconds of a cell outside its passes, and bytes of a process before its arrays."""
REST_EXPONENT = 0.5
HARNESS_BYTES = SIZES_BYTES["float32"]
"""The harness draws every array in float32."""


def forecast(
    name: str,
    works: Sequence[Work],
    protocol: Protocol,
    adapters: Mapping[str, Adapter],
    recordings: Sequence[Recording],
    model: str,
    limits: Limits,
) -> Plan:
    """The forecast of each work on this model of machine, from these recordings."""
    evidence = Evidence([*samples(recordings, model), *_more(recordings, model)])
    counts = Counter(Work(cell.case, cell.library, cell.variant) for cell in cells(works, protocol))
    forecaster = Forecaster(evidence, protocol, adapters, limits)
    return Plan(
        name,
        model,
        limits,
        protocol.phases,
        [forecaster.of(work, counts[work]) for work in works],
        [recording.name for recording in recordings if recording.model == model],
        [recording.name for recording in recordings if recording.model != model],
    )


@dataclass(frozen=True, slots=True)
class Forecaster:
    """Makes forecasts for one protocol and one machine."""

    evidence: Evidence
    protocol: Protocol
    adapters: Mapping[str, Adapter]
    limits: Limits

    def of(self, work: Work, count: int) -> Forecast:
        """The forecast of a work with so many cells."""
        kind, reason = self._hindrance(work)
        if kind:
            return Forecast(work=work, cells=count, expected=kind, reason=reason, seconds=0.0)
        contender, case = (work.library, work.variant), work.case
        phases = self._phases(work)
        passes = self._passes(contender, case, phases)
        memory_bytes, peak = self._memory(contender, case, phases, passes)
        on_card = case.device.startswith("cuda")
        limit = self.limits.device_bytes if on_card else self.limits.host_bytes
        each = self._cell_seconds(contender, case, phases, passes)
        expected = "ok" if peak or each else "unknown"
        if limit is not None and memory_bytes > limit:
            expected = "oom-device" if on_card else "oom-host"
            start = self.evidence.least(contender, ("time", REST))
            each = None if start is None else (start, start)
        elif each and max(each) > self.protocol.timeout_seconds:
            expected = "timeout"
        seconds = self._of_cells(each) if each else None
        return Forecast(
            work=work,
            cells=count,
            expected=expected,
            memory_bytes=memory_bytes,
            peak=peak,
            passes=passes,
            seconds=seconds,
        )

    def _hindrance(self, work: Work) -> tuple[str, str]:
        """The kind of skip of a work that cannot run here, and the reason; two empty texts if it can."""
        variant = self.adapters[work.library].variants[work.variant]
        if refusal := variant.refusal(work.case):
            return "unsupported", refusal
        if self.protocol.phases and not self._phases(work):
            return "unsupported", f"inference only: {variant.inference_only}"
        if work.case.device.startswith("cuda") and not self.limits.has_cuda:
            return "unavailable", "no CUDA device on this machine"
        if (threads := work.case.cpus(nodes.count())) > self.limits.usable_cpus:
            return "unavailable", f"{threads} threads on {self.limits.usable_cpus} CPUs"
        if reason := provable.hindrance(work.case):
            return "unprovable", reason
        return "", ""

    def _phases(self, work: Work) -> tuple[str, ...]:
        """The phases that the worker times."""
        variant = self.adapters[work.library].variants[work.variant]
        return tuple(name for name in self.protocol.phases if name == "inference" or not variant.inference_only)

    def _passes(self, contender: Contender, case: Case, phases: Sequence[str]) -> dict[str, Prediction]:
        """The predicted time of a pass of each phase, and of forward for a backward pass."""
        wanted = dict.fromkeys([*phases, *(["forward"] if "backward" in phases else [])])
        each = {
            phase: self.evidence.predict(contender, case, (phase, "time"), "ns", _counted(phase, True))
            for phase in wanted
        }
        return {phase: prediction for phase, prediction in each.items() if prediction}

    def _budget(self, case: Case) -> Budget:
        protocol = self.protocol
        return Budget(
            protocol.warmup_passes,
            protocol.repetitions,
            round(protocol.min_repetition_ms * 1e6),
            round(protocol.max_phase_seconds * 1e9),
            busy_ns(case.device),
        )

    def _phase_ns(self, case: Case, phase: str, passes: Mapping[str, Prediction]) -> tuple[int, int]:
        """The time of a phase, and the passes of a repetition."""
        if case.is_fed:
            return self.protocol.repetitions * round(passes[phase].value), 1
        forward = passes.get("forward")
        forward_ns = (forward.value if forward else passes[phase].value) if phase == "backward" else None
        return cell_time.phase_ns(passes[phase].value, self._budget(case), forward_ns)

    def _memory(
        self, contender: Contender, case: Case, phases: Sequence[str], passes: Mapping[str, Prediction]
    ) -> tuple[float, Prediction | None]:
        """The bytes of a work, and the predicted peak of a pass in it; without one, the bytes of its arrays alone."""
        arrays = arrays_bytes(case, SIZES_BYTES[case.dtype])
        memory = "device" if case.device.startswith("cuda") else "host"
        measured = "inference" if set(phases) == {"inference"} else "train"

        def predict(name: str) -> Prediction | None:
            return self.evidence.predict(
                contender, case, (measured, f"{memory}_{name}"), "bytes", _counted(measured, False)
            )

        peak, retained = predict("peak"), predict("retained")
        start = self.evidence.least(contender, (measured, f"{memory}_{START}"))
        if peak is None:
            return arrays, None
        copy = arrays_bytes(case, HARNESS_BYTES) if memory == "host" else 0
        graphs = 0.0
        if "backward" in phases and "backward" in passes and retained:
            _, count = self._phase_ns(case, "backward", passes)
            graphs = (count - 1) * retained.value
        return (start or 0.0) + arrays + copy + peak.value + graphs, peak

    def _cell_seconds(
        self, contender: Contender, case: Case, phases: Sequence[str], passes: Mapping[str, Prediction]
    ) -> tuple[float, float] | None:
        """The time of a cell that times or verifies, and of one that measures memory; None if a part is unknown."""
        time_rest = self._rest(contender, case, "time")
        if not phases:
            verified = self._rest(contender, case, "verify") or time_rest
            return None if verified is None else (verified, 0.0)
        if time_rest is None or any(phase not in passes for phase in phases):
            return None
        timed = time_rest + sum(self._phase_ns(case, phase, passes)[0] for phase in phases) / 1e9
        longest = max(passes[phase].value for phase in phases)
        weighed = max(self._rest(contender, case, "memory") or time_rest, cell_time.memory_ns(longest) / 1e9)
        return timed, weighed

    def _of_cells(self, each: tuple[float, float]) -> float:
        """The time of all cells of a work, each ended by the timeout at the latest."""
        timed, weighed = (min(seconds, self.protocol.timeout_seconds) for seconds in each)
        memory_trials = self.protocol.memory_trials if self.protocol.phases else 0
        return self.protocol.trials * timed + memory_trials * weighed

    def _rest(self, contender: Contender, case: Case, measure: str) -> float | None:
        metric = (measure, REST)
        rest = self.evidence.predict(contender, case, metric, "s", None, REST_EXPONENT)
        least = self.evidence.least(contender, metric)
        return None if rest is None or least is None else max(rest.value, least)


def arrays_bytes(case: Case, size: int) -> float:
    """Bytes of the numbers that exist before a pass, and of the cotangent."""
    return size * (workloads.of(case).static_values(case) + prod(case.shape))


def _counted(phase: str, multiplies: bool) -> Counted:
    """The ratio of the workload's least bytes in two cases; of its products, if there are any and they take time."""

    def ratio(before: Case, after: Case) -> float:
        if multiplies and flops(before, phase):
            return flops(after, phase) / flops(before, phase)
        return least_bytes(after, phase) / least_bytes(before, phase)

    return ratio


def _more(recordings: Sequence[Recording], model: str) -> Iterator[Sample]:
    """The rests of recorded cells of this model of machine, and the bytes of processes before their arrays exist."""
    for recording in recordings:
        for record in recording.records:
            contender, case = (record.library, record.variant), record.case
            if record.status != "measured" or record.side:
                continue
            if recording.model == model and record.wall_s is not None:
                spent = sum(_recorded_ns(record.phases, phase, case.is_fed) for phase in record.phases) / 1e9
                rest = max(0.0, record.wall_s - spent)
                yield Sample(contender, case, (record.measure, REST), "s", rest, recording.name)
            if record.memory:
                metric = record.memory["phase"]
                for memory, value in _starts(record.memory, case):
                    yield Sample(contender, case, (metric, f"{memory}_{START}"), "bytes", value, recording.name)


def _recorded_ns(phases: Mapping[str, Any], phase: str, is_fed: bool) -> int:
    """The time of a recorded phase, without the excess of its first call."""
    if is_fed:
        return sum(phases[phase]["repetitions_ns"])
    forward_ns = median_ns(phases.get("forward", phases[phase])) if phase == "backward" else None
    return cell_time.phase_ns(median_ns(phases[phase]), cell_time.recorded_budget(phases[phase]), forward_ns)[0]


def _starts(memory: Mapping[str, Any], case: Case) -> Iterator[tuple[str, float]]:
    """(host or device, bytes) of a process before the arrays of its case exist."""
    before = memory.get("host", {}).get("before_bytes")
    if before is not None:
        on_host = 0 if case.device.startswith("cuda") else memory["static_bytes"]
        yield "host", max(0.0, before - on_host - arrays_bytes(case, HARNESS_BYTES))
    context = memory.get("device", {}).get("unaccounted_bytes")
    if context is not None:
        yield "device", max(0.0, context)
