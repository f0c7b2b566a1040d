"""The roofline: the least time in which this machine can do a case, with any fusion or recomputation.

A workload counts the products of each phase, and the numbers that it must read and write (snnbench/workloads/):

    least bytes = size of a number of the case's dtype * (numbers read + numbers written)
    multiplying = sum of the phase's k products, each in the time measured for it, - (k - 1) * time of an empty call
    floor = max(multiplying, least bytes / bandwidth of the copy)

A program may also look for spikes, and multiply by nothing else. So no time is refused that such a program could have:
`bound_ns` counts the products with the input, and with the spikes of a layer, by the share of their numbers that are
not 0. `rates` has this share for layers, from the proof of their spikes. Tables show the floor itself, which is that of
dense products.

The floor is the larger of the two, not their sum, because a machine can compute and move data at once. Products are
measured one by one, and each includes the cost of one framework call. A phase may be a single call, so the cost of
k - 1 calls is subtracted; it dominates products of microseconds. An accelerator computes while it is called, so the
true floor is a little higher. A recurrent layer has products of one time step each, in a row. A program may compute
them without calls, so they count no more than at the rate of the fastest product over all steps. Values kept between
forward and backward cost nothing: they can be recomputed, or stay in a cache. The neuron's arithmetic costs nothing.
`forward` may keep values or not, so its floor is that of `inference`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snnbench import workloads
from snnbench.cases.case import Case
from snnbench.worker.durations import summarise, trial_median

Timing = Mapping[str, Any]
"""The `repetitions_ns` and `passes` of a phase."""
Timings = Mapping[str, Timing]
"""Those of each phase."""
Rates = Mapping[str, float]
"""The share of spikes of layers, by number, or of sites of neurons, by name."""
SIZES_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
SAME_SHAPE = {"current": "input_gradient", "input_gradient": "current"}
"""Products of one shape. The faster time counts for both, because a library chooses the memory layout of weights."""
COPY, CALL = "copy", "call"
"""Two more measurements: a copy, and a product of two numbers, which costs only the call."""
SMALLEST_SPREAD = 0.05
"""Two times of one process that differ by less count as equal: the effect floor of a comparison."""
LARGEST_SPREAD = 0.45
"""On any machine a pass in half the floor is below it. Clocks that jump by a factor of 1.8 stay within this spread."""


@dataclass(slots=True)
class Peak:
    """Raw durations of one product or of the copy: `work` FLOPs or bytes a pass, `passes` passes a repetition."""

    work: int
    passes: int = 0
    first_call_ns: int = 0
    repetitions_ns: list[int] = field(default_factory=list)

    @property
    def fastest_ns(self) -> float:
        """The shortest time of a pass, since this machine has reached it once."""
        return min(self.repetitions_ns) / self.passes

    @property
    def spread(self) -> float:
        """Interquartile range of the repetitions, relative to their median."""
        return relative_spread(self.repetitions_ns)


def flops(case: Case, phase: str) -> int:
    """FLOPs of the products in a pass of a phase."""
    workload = workloads.of(case)
    return sum(count * workload.product_flops(case, name) for name, count in workload.products(case, phase).items())


def least_bytes(case: Case, phase: str) -> int:
    """Bytes that a pass of a phase reads or writes at least once, with any fusion or recomputation."""
    return SIZES_BYTES[case.dtype] * workloads.of(case).least_values(case, phase)


def needed(case: Case, phases: Sequence[str]) -> list[str]:
    """Names of the peaks that the floors of these phases need."""
    return [*dict.fromkeys(name for phase in phases for name in workloads.of(case).products(case, phase)), COPY, CALL]


def floor_ns(case: Case, phase: str, peaks: Mapping[str, Peak]) -> float:
    """The floor of a phase on a machine with these peaks, in nanoseconds."""
    return _least_ns(case, phase, peaks, {})


def rates_of(checks: Mapping[str, Mapping[str, Any]]) -> Rates:
    """The share of spikes of each layer or site that is in the checks of a process: the least of its phases."""
    rates: dict[str, float] = {}
    for check, found in checks.items():
        for name, rate in found.get("rates", {}).items() if check.startswith("spot-") else ():
            rates[name] = min(rate, rates.get(name, rate))
    return rates


def bound_ns(case: Case, phase: str, peaks: Mapping[str, Peak], rates: Rates) -> float:
    """The floor of a phase for a program that skips the zeros of the input and of spikes, in nanoseconds."""
    return _least_ns(case, phase, peaks, workloads.of(case).spared(case, phase, rates))


def _least_ns(case: Case, phase: str, peaks: Mapping[str, Peak], spared: Mapping[str, float]) -> float:
    counts = workloads.of(case).products(case, phase)
    multiplying = sum((count - spared.get(name, 0)) * _product_ns(case, name, peaks) for name, count in counts.items())
    multiplying -= max(0, sum(counts.values()) - 1) * peaks[CALL].fastest_ns
    return max(multiplying, least_bytes(case, phase) * peaks[COPY].fastest_ns / peaks[COPY].work)


def spread(case: Case, phase: str, peaks: Mapping[str, Peak]) -> float:
    """The share of the floor by which a time may lie under it.

    It is the largest relative interquartile range of the peaks that the phase needs. The time's own repetitions have no
    part in it: a library can make them differ as it likes. The bounds: durations that agree by chance do not make a
    machine steady, and chance never halves a time.
    """
    seen = [peaks[name].spread for name in (*workloads.of(case).products(case, phase), COPY)]
    return min(LARGEST_SPREAD, max(SMALLEST_SPREAD, *seen))


def under(case: Case, phase: str, peaks: Mapping[str, Peak], timing: Timing, rates: Rates) -> bool:
    """Whether the median pass of a phase is under the bound, even within the spread."""
    return _median_ns(timing) < bound_ns(case, phase, peaks, rates)


def complaint(case: Case, phase: str, peaks: Mapping[str, Peak], timing: Timing, rates: Rates) -> str | None:
    """Why the median pass of a phase is below the floor, in one line; None if it is not."""
    floor, margin = bound_ns(case, phase, peaks, rates), spread(case, phase, peaks)
    pass_ns = _median_ns(timing)
    if pass_ns >= floor * (1 - margin):
        return None
    return (
        f"a pass of {phase} took {pass_ns / 1e6:.3g} ms, which is below the floor of {floor / 1e6:.3g} ms "
        f"by more than the spread of {margin:.0%}"
    )


def any_under(case: Case, peaks: Mapping[str, Peak], timings: Timings, rates: Rates) -> bool:
    """Whether any phase's time is under its floor, so that the peaks or the time are in doubt."""
    return any(under(case, name, peaks, timing, rates) for name, timing in timings.items())


def complaints(case: Case, peaks: Mapping[str, Peak], timings: Timings, rates: Rates) -> dict[str, str]:
    """Why the times of some phases cannot be true, by phase."""
    each = ((name, complaint(case, name, peaks, timing, rates)) for name, timing in timings.items())
    return {name: text for name, text in each if text}


def beside(case: Case, phase: str, peaks: Mapping[str, Peak], timing: Timing) -> dict[str, float]:
    """The floor of a phase, and how many times the floor the phase took."""
    floor = floor_ns(case, phase, peaks)
    return {
        "flops": flops(case, phase),
        "least_bytes": least_bytes(case, phase),
        "floor_ns": round(floor),
        "times_floor": round(_median_ns(timing) / floor, 4),
    }


def relative_spread(durations: Sequence[float]) -> float:
    """Interquartile range over median; 0 for a single duration."""
    summary = summarise(durations)
    return (summary.high - summary.low) / summary.median if summary.median else 0.0


def _median_ns(timing: Timing) -> float:
    """The median pass."""
    return trial_median(timing["repetitions_ns"], timing["passes"])


def _product_ns(case: Case, name: str, peaks: Mapping[str, Peak]) -> float:
    alike = (name, SAME_SHAPE.get(name, name))
    measured_ns = min(peaks[one].fastest_ns for one in alike if one in peaks)
    if not workloads.of(case).is_of_step(case, name):
        return measured_ns
    whole = [
        peak
        for other, peak in peaks.items()
        if not (other in (COPY, CALL) or workloads.of(case).is_of_step(case, other))
    ]
    return min(measured_ns, *(peak.fastest_ns * peaks[name].work / peak.work for peak in whole))
