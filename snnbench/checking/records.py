"""The rules for one record: each rule recomputes its values and trusts no summary."""

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from snnbench import measures, workloads
from snnbench.analysis import race
from snnbench.cases.case import Case
from snnbench.cases.outcome import Outcome
from snnbench.checking import epochs
from snnbench.plan.config import Protocol
from snnbench.proof import fresh
from snnbench.proof.comparison import UNPROVABLE, verdict
from snnbench.proof.exam import PASSES as EXAM_PASSES
from snnbench.proof.extent import FEWEST_NEURONS
from snnbench.proof.tolerance import (
    EXAM_GRADIENT_ROUNDOFFS,
    RATE_WINDOW,
    allowed_differences,
    gradient_tolerance,
)
from snnbench.recording.flags import raised
from snnbench.recording.record import Record, recorded
from snnbench.worker import floor, used_cpus
from snnbench.worker.durations import trial_median
from snnbench.worker.timing import FEWEST_REPETITIONS, is_warm_up_over

Complaints = Iterator[str]
PASSES_BEFORE_8 = 5
"""Fresh passes of a phase before schema 8, of which one was on content drawn anew."""
MOST_FRESH = 10_000
"""Most fresh passes of a phase: one per repetition, if a repetition is a single pass."""


def outcome(record: Record) -> Complaints:
    """The outcome is in the closed lists, and a measured record has a verdict that proves its work."""
    if complaint := record.outcome.complaint():
        yield complaint
    if datetime.fromisoformat(record.started).tzinfo is None:
        yield "started at a time without its zone"


def name(record: Record, machine: str, protocol: Protocol) -> Complaints:
    """The cell's name is the digest of its content: an edited case, trial or protocol has another name."""
    expected = recorded(record).key(
        record.adapter, record.environment, machine, protocol, record.settings.get("variables", {})
    )
    if record.cell != expected:
        yield f"its content has the name {expected}"


def proof(record: Record, schema: int) -> Complaints:
    """The exam and a spot check of every measured phase found no fault, or show how far a contender deviates."""
    case, ending = record.case, record.outcome
    deviation = ending.deviation
    if ending.verdict != (expected := verdict(case, True, deviation)):
        yield f"verdict {ending.verdict}, where {expected} is the word"
    workload = workloads.of(case)
    wanted = [f"exam-{number}" for number in range(1, 1 + len(workload.exams(case)))]
    wanted += epochs.wanted(record) if case.is_fed else _wanted(record, schema)
    yield from (f"no check {name}" for name in wanted if name not in record.checks)
    if not any(name.startswith("spot-") or epochs.is_one(name) for name in record.checks):
        yield "no spot check"
    held = not deviation or ending.own_rule is not None
    layered = case.is_judged_by_layer and (schema >= 7 or not case.is_exact_format)
    for name, check in record.checks.items():
        if epochs.is_one(name):
            yield from (f"{name}: {complaint}" for complaint in epochs.complaints(name, check, record))
            continue
        yield from (f"{name}: {complaint}" for complaint in _sized(name, check, case, ending, layered))
        if held and not name.startswith("common-"):
            yield from (f"{name}: {complaint}" for complaint in _check(name, check, case, ending, layered))
    trained = record.measure == "verify" or "train" in (*record.phases, record.memory.get("phase"))
    if not held and trained and ending.inference_only is None and case.sites == 1:
        gradient = next(iter(workload.PARAMETERS), "input")
        both = (record.checks.get(name, {}) for name in ("common-train", "spot-train"))
        if not any(gradient in check.get("gradient_errors", {}) for check in both):
            yield f"deviates, and nothing says how far off its gradient of {gradient} is"


def _wanted(record: Record, schema: int) -> list[str]:
    """The checks of timed passes, or of the pass whose memory was measured."""
    phases = record.phases or ([record.memory["phase"]] if record.memory else [])
    fresh = [phase for phase, timing in record.phases.items() if schema >= 4 and not timing.get("enough_ns")]
    return [f"spot-{phase}" for phase in phases] + [f"fresh-{phase}" for phase in fresh]


def _sized(name: str, check: Mapping[str, Any], case: Case, ending: Outcome, layered: bool) -> Complaints:
    """Any check, also of a deviating contender, covers as many places as the case or exam has, with finite numbers."""
    least, most = _places(name, check, case, ending, layered)
    if not least <= check["compared"] <= most:
        compared = check["compared"] or "nothing"
        yield f"compared {compared}, where there are {least} to {most} places"
    if not 0 <= check["unexplained"] <= check["differing"] <= most:
        yield f"{check['differing']} spikes differ, {check['unexplained']} of them unexplained, of {most} at the most"
    numbers = {"rate": check["rate"], **check["gradient_errors"]}
    yield from (f"{what} is {value}" for what, value in numbers.items() if not math.isfinite(value))


def _places(name: str, check: Mapping[str, Any], case: Case, ending: Outcome, layered: bool) -> tuple[int, int]:
    """(fewest, most) places that a check compares.

    With several layers, samples that rounding diverted are left out, but never all samples. If layers are judged one by
    one (`layered`), the places of each layer are compared.
    """
    if name.startswith("exam-"):
        steps, batch, answers = workloads.of(case).exams(case)[0].case.shape
        sample, whole = steps * answers, steps * batch * answers
        return (sample if ending.own_rule is not None and name != "exam-1" else whole), len(EXAM_PASSES) * whole
    sample = case.time_steps * case.neurons
    judged = case.sites if layered else 1
    if name.startswith("fresh-"):
        fewest = sample if case.fan_in else min(sample, case.time_steps * case.batch * FEWEST_NEURONS)
        return fewest, (case.updates if layered else case.batch * sample) * MOST_FRESH
    if case.sites > judged or (name.startswith("common-") and case.sites > 1):
        return (0 if name.startswith("common-") else sample), case.batch * sample
    widths = getattr(case, "layer_widths", ())[1:]
    if layered and len(set(widths)) > 1:  # each layer has an extent of its own
        return case.time_steps * case.batch * sum(min(width, FEWEST_NEURONS) for width in widths), 2 * case.updates
    if check.get("neurons") is None:  # before schema 4
        few = case.time_steps * case.batch * min(case.neurons, FEWEST_NEURONS)
        return few, few + sample
    few, sample = judged * case.time_steps * case.batch * check["neurons"], judged * sample
    if (check["neurons"], check["samples"]) == (case.neurons, case.batch):
        return few, few
    return (few if name.startswith("common-") else few + sample * check["samples"]), few + sample * check["samples"]


def _check(name: str, check: Mapping[str, Any], case: Case, ending: Outcome, layered: bool) -> Complaints:
    """A check against a rule, the case's or the contender's own, found no fault."""
    if check["complaints"] or not check["correct"] or check["unexplained"]:
        yield f"found a fault: {'; '.join(check['complaints']) or check['first_wrong']}"
    # With several layers whole samples may be left out; the spot check counts samples, a number of spikes does not.
    counted = case.is_exact_format and case.sites == 1
    if counted and check["differing"] > max(allowed_differences(check["compared"]), check.get("allowed", 0)):
        yield f"{check['differing']} of {check['compared']} spikes differ"
    low, high = case.QUIETEST, RATE_WINDOW[1]
    if ending.own_rule is None and not low <= check["rate"] <= high:
        yield f"{check['rate']:.3g} spikes per step, outside the window {low} to {high}"
    exam, errors = name.startswith("exam"), check["gradient_errors"]
    # Older recordings have a tolerance that grows with the slope, and name no other.
    magnified = max(1.0, ending.own_rule["slope"]) if ending.own_rule is not None else 1.0
    for gradient, error in errors.items():
        summed = max(1, case.fan_out) if gradient == "input" else case.summed
        sums = {"roundoffs": EXAM_GRADIENT_ROUNDOFFS} if exam else {"summed": summed}
        of_case = min(check.get("tolerances", {}).get(gradient, 0.0), UNPROVABLE)
        tolerance = max(magnified * gradient_tolerance(case, **sums), of_case)
        if not 0 <= error <= tolerance:
            yield f"gradient of {gradient} off by {error:.2g} ({tolerance:.1g} allowed)"
    differentiated = exam or name.removeprefix("spot-") in ("train", "backward")
    if differentiated and ending.inference_only is None and (layered or not check["differing"]):
        has_input = (workloads.of(case).exams(case)[0].case if exam else case).input_gradient
        expected = {*workloads.of(case).differentiated(case), *(["input"] if has_input else [])}
        yield from (f"no gradient of {lacking}" for lacking in sorted(expected - {one.split(" ")[0] for one in errors}))


def durations(record: Record, protocol: Protocol, schema: int) -> Complaints:
    """Every raw duration of every phase is there, nothing was compiled among them, and no phase used too many CPUs."""
    cpus = {phase: timing.get("contention", {}).get("timed_cpus", 0.0) for phase, timing in record.phases.items()}
    allowed = record.case.cpus() + record.case.loaders  # on a system that cannot pin processes
    each = (used_cpus.complaint(phase, used, allowed) for phase, used in cpus.items())
    yield from (complaint for complaint in each if complaint)
    if record.case.is_fed:
        yield from epochs.durations(record, protocol)
        return
    phases = [p for p in protocol.phases if p == "inference" or record.outcome.inference_only is None]
    of_race = [race.headline(protocol)] if protocol.is_race else phases
    if sorted(record.phases) not in (sorted(phases), of_race):
        yield f"phases {', '.join(record.phases) or 'none'}, where the protocol asks for {', '.join(phases)}"
    max_phase_ns = round(protocol.max_phase_seconds * 1e9)
    for phase, timing in record.phases.items():
        repetitions, short = timing.get("contested_ns") or timing["repetitions_ns"], protocol.repetitions
        if not all(type(ns) is int and ns > 0 for ns in [*repetitions, *timing["warmup_ns"], timing["first_call_ns"]]):
            yield f"{phase}: durations are not whole nanoseconds above 0"
        if timing.get("enough_ns"):
            if not protocol.is_race:
                yield f"{phase}: a pass is called too slow to matter, and this is no race"
            yield from (f"{phase}: {complaint}" for complaint in _of_slow(timing))
            continue
        stopped_early = sum(repetitions) * (1 + 2 / max(1, len(repetitions))) > max_phase_ns
        if len(repetitions) != short and not (
            min(short, FEWEST_REPETITIONS) <= len(repetitions) < short and stopped_early
        ):
            yield f"{phase}: {len(repetitions)} repetitions, where the protocol asks for {short}"
        warmed = len(timing["warmup_ns"])
        is_warm = 0 < warmed < protocol.warmup_passes and is_warm_up_over(timing["warmup_ns"], max_phase_ns)
        if warmed != protocol.warmup_passes and not is_warm:
            yield f"{phase}: {warmed} warm-up passes, not {protocol.warmup_passes}"
        if schema >= 4:
            yield from (f"{phase}: {complaint}" for complaint in _fresh(timing, record.case.device == "cpu", schema))
        if timing["passes"] < 1 or timing["compilations"]:
            yield f"{phase}: {timing['passes']} passes a repetition, {timing['compilations']} compilations among them"


def _of_slow(timing: Mapping[str, Any]) -> Complaints:
    """A phase that is too slow to matter has one repetition, a pass on new content that took too long."""
    if len(timing["repetitions_ns"]) != 1 or timing["passes"] != 1 or timing["fresh_ns"] != timing["repetitions_ns"]:
        yield "a pass that is too slow to matter is measured once, on new content"
    elif timing["repetitions_ns"][0] <= timing["enough_ns"]:
        yield f"a pass is called too slow to matter, and takes no more than {timing['enough_ns'] / 1e6:.3g} ms"


def _fresh(timing: Mapping[str, Any], is_on_cpu: bool, schema: int) -> Complaints:
    """Passes on new content are there, and the fastest of them allows the reported time."""
    fresh_ns, drawn_ns, repetitions = timing["fresh_ns"], timing["drawn_ns"], timing["repetitions_ns"]
    if schema >= 8:
        first = timing.get("contested_ns") or repetitions
        if not fresh.are_enough(len(drawn_ns), len(first), timing["passes"]):
            yield f"{len(drawn_ns)} passes on content drawn anew, where it takes {fresh.DRAWN}"
        elif is_on_cpu and fresh.are_slow(drawn_ns, trial_median(repetitions, timing["passes"]), 1, 0):
            yield f"no pass on content drawn anew takes less than {min(drawn_ns) / 1e6:.3g} ms"
    elif timing["passes"] > 1 and (len(fresh_ns) + len(drawn_ns) <= PASSES_BEFORE_8 or not drawn_ns):
        yield f"{len(fresh_ns)} fresh passes, {len(drawn_ns)} on content drawn anew, not {PASSES_BEFORE_8} and 1"
    if timing["passes"] == 1 and sorted(set(repetitions) - {*fresh_ns, *drawn_ns}):
        yield "a repetition of a single pass is not among the fresh passes"


def floors(record: Record) -> Complaints:
    """The floor follows from the peaks' raw durations, and no time lies below it."""
    case = record.case
    peaks = {name: floor.Peak(**peak) for name, peak in record.peaks.items()}
    if lacking := [name for name in floor.needed(case, list(record.phases)) if name not in peaks]:
        yield f"no peak of {', '.join(lacking)}"
        return
    for product in set(peaks) - {floor.COPY, floor.CALL}:
        if peaks[product].work != (flops := workloads.of(case).product_flops(case, product)):
            yield f"peak {product} is of {peaks[product].work} FLOPs, where the case has {flops}"
    for phase, timing in record.phases.items():
        if complaint := floor.complaint(case, phase, peaks, timing, floor.rates_of(record.checks)):
            yield complaint
        floor_ns = floor.floor_ns(case, phase, peaks)
        times = trial_median(timing["repetitions_ns"], timing["passes"]) / floor_ns
        expected = {"flops": floor.flops(case, phase), "least_bytes": floor.least_bytes(case, phase)}
        for key, value in (expected | {"floor_ns": floor_ns, "times_floor": times}).items():
            rounding = 0.5 if key == "floor_ns" else 0.0  # a record has the floor in whole nanoseconds
            if not math.isclose(timing[key], value, rel_tol=1e-3, abs_tol=rounding):
                yield f"{phase}: {key} is {timing[key]}, where its own numbers give {value:.6g}"


def flags(record: Record) -> Complaints:
    """The flags are exactly those that follow from the numbers."""
    due = set(raised(record.phases, record.memory, record.settings, record.case.threads, record.flags))
    if wrong := sorted(due ^ set(record.flags)):
        yield f"the record has the flags {record.flags}, its numbers give {sorted(due)}: {wrong}"


def complaints(record: Record, schema: int, machine: str, protocol: Protocol) -> Iterator[tuple[str, str]]:
    """(rule, complaint) for every violation in a record. Malformed content is a complaint, too."""
    measured = record.status == "measured"
    rules: dict[str, tuple[bool, Callable[[], Complaints]]] = {
        "outcome": (True, lambda: outcome(record)),
        "name": (schema >= 3, lambda: name(record, machine, protocol)),
        "proof": (measured, lambda: proof(record, schema)),
        "durations": (measured and record.measure == "time", lambda: durations(record, protocol, schema)),
        "floor": (measured and record.measure == "time" and schema >= 2, lambda: floors(record)),
        **{
            measures.title(name): (measured and record.measure == half.cells, partial(half.complaints, record, schema))
            for name, half in measures.harnesses().items()
        },
        "flags": (measured, lambda: flags(record)),
    }
    for rule, (applies, check) in rules.items():
        if applies:
            try:
                yield from ((rule, complaint) for complaint in check())
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
                yield rule, f"malformed: {type(error).__name__}: {error}"
