"""Results: the result of one contender in one case, over all its trials."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from snnbench import workloads
from snnbench.analysis import endings, floors, memory_program
from snnbench.analysis.metrics import distance_checks, gradient_errors, incorrect, metrics, pair
from snnbench.cases.case import Case
from snnbench.cases.outcome import failed
from snnbench.proof.extent import sampled
from snnbench.recording.record import Record
from snnbench.units import MS
from snnbench.worker.durations import Summary, pass_ns, summarise

EVERYTHING = "all"


def coverage(case: Case, checks: Iterable[Mapping[str, Any]]) -> str:
    """`all`, or the share of neurons and number of samples that spot checks compared; "" if no check records it.

    A check that compares a part draws it anew and records the seed. Where no product mixes neurons, the part is neurons
    over the whole batch, and no sample is drawn.
    """
    neurons, samples = np.zeros(case.neurons, bool), np.zeros(case.batch, bool)
    has_extent = False
    for check in checks:
        if check.get("neurons") is None:
            continue
        has_extent = True
        if check.get("seed") is None:
            return EVERYTHING
        neurons[sampled(case.neurons, check["neurons"], check["seed"])] = True
        samples[sampled(case.batch, check["samples"], check["seed"])] = True
    if not has_extent:
        return ""
    if neurons.all() or samples.all():
        return EVERYTHING
    share = f"{neurons.mean():.0%}" if neurons.mean() >= 0.005 else "under 1%"
    return f"{share} of neurons" + (f", {samples.sum()} of {case.batch} samples" if samples.any() else "")


PHASES = workloads.PHASES
"""Phases, most interesting first: contenders are ordered by the first one that was timed."""
EVERYONE = "every contender"
Metric = tuple[str, str]
"""(phase, metric)."""


@dataclass(slots=True)
class Result:
    """One contender in one case: a summary over trials for each metric, or the reasons why there is no summary.

    `repetitions`: all durations [ns per pass], by phase, then trial, then repetition; trials are in the order of the
    phase's "time" summary.
    `floors_ns`: the case's floors by phase, the same for all contenders (floors.of_case).
    `distance`: for a deviating contender, a check of its answers against the case's own neuron. `own_rule`: whether it
    was held to a rule that it declares. `deviation`: the difference that it declares. `checked`: how much of its
    answers was compared, if its records say so. `split`: how it divides the work among processes, or empty.
    """

    contender: str
    version: str
    verdict: str = ""
    summaries: dict[Metric, Summary] = field(default_factory=dict)
    repetitions: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    distance: dict[str, Any] | None = None
    own_rule: bool = False
    deviation: str = ""
    flags: set[str] = field(default_factory=set)
    floors_ns: dict[str, float] = field(default_factory=dict)
    checked: str = ""
    split: str = ""

    @property
    def failure(self) -> str:
        """The reason of the first failed trial, or "". The times are of the other trials."""
        return next((reason for reason in self.reasons if reason.startswith("failed: ")), "")

    @property
    def order(self) -> tuple[int, int, float, str]:
        """Sort key: by verdict (exact, equivalent, deviates, none), then by the first phase timed, then by its time."""
        phase = next((number for number, p in enumerate(PHASES) if (p, "time") in self.summaries), len(PHASES))
        time = self.summaries[PHASES[phase], "time"].median if phase < len(PHASES) else float("inf")
        ranks = {"exact": 0, "equivalent": 1, "deviates": 2}
        return ranks.get(self.verdict, 3), phase, time, self.contender


def results_by_case(records: Iterable[Record]) -> dict[Case, list[Result]]:
    """Results by case, each list sorted by `order`."""
    records = list(records)
    wrong = incorrect(records)
    grouped: dict[Case, dict[str, list[Record]]] = {}
    for record in records:
        grouped.setdefault(record.case, {}).setdefault(record.label, []).append(record)
    by_case = {}
    for case in sorted(grouped, key=_case_order):
        results = [_result(name, group, pair(group[0]) in wrong) for name, group in grouped[case].items()]
        of_case = [record for group in grouped[case].values() for record in group]
        floors_ns, bounds_ns = floors.of_case(of_case), floors.bound_of_case(of_case)
        for result in results:
            result.floors_ns = floors_ns
            _refuse_below_floor(result, bounds_ns)
        by_case[case] = sorted(results, key=lambda result: result.order)
    return by_case


def headline(records: Iterable[Record]) -> list[str]:
    """The most interesting phase with a time, alone in a list; an empty list if nothing was timed."""
    timed = {phase for record in records for phase in record.phases}
    return [phase for phase in PHASES if phase in timed][:1]


def _result(name: str, records: list[Record], wrong: bool) -> Result:
    version = next((record.version for record in records if record.version), None)
    result = Result(name, version or "")
    values: dict[Metric, list[float]] = {}
    repetitions: dict[str, list[tuple[float, ...]]] = {}
    for record in sorted(records, key=lambda record: record.trial):
        if record.status != "measured":
            reason = " ".join(str(record.outcome).split())
            result.reasons += [reason] if reason not in result.reasons else []
            continue
        result.flags |= set(record.flags)
        for phase, metric, _, value in metrics(record):
            values.setdefault((phase, metric), []).append(value)
        for phase, timing in record.phases.items():
            repetitions.setdefault(phase, []).append(tuple(pass_ns(timing)))
    if not wrong:
        verdicts = [str(record.outcome.verdict) for record in records if record.status == "measured"]
        result.verdict = max(verdicts, key=["exact", "equivalent", "deviates"].index, default="")
        result.summaries = {metric: summarise(found) for metric, found in values.items()}
        result.repetitions = repetitions
    measured = [record for record in records if record.status == "measured"]
    spots = [check for record in measured for name, check in record.checks.items() if name.startswith("spot-")]
    result.checked = coverage(records[0].case, spots)
    result.split = next((str(record.settings["split"]) for record in measured if "split" in record.settings), "")
    if result.verdict == "deviates":
        result.reasons.insert(0, _deviation(records))
        result.deviation = next(record.outcome.deviation for record in records if record.outcome.deviation)
        result.own_rule = any(record.outcome.own_rule is not None for record in records)
        result.distance = next((check for record in records for check in distance_checks(record)), None)
    if reason := next((r.outcome.inference_only for r in records if r.outcome.inference_only), ""):
        result.reasons.insert(0, f"inference only: {reason}")
    result.reasons += dict.fromkeys(text for _, text in memory_program.complaints(records))
    counts = {} if wrong else endings.differing(records)
    if endings.UNSUPPORTED in counts:  # no library can do a case in some trials only
        _withhold(result)
        result.reasons.insert(0, f"failed: {endings.words(counts)}")
    elif counts:
        result.reasons.append(endings.words(counts))
    return result


def reasons(results: Sequence[Result]) -> list[tuple[str, str]]:
    """(contender, reason) for the contenders of a case; a reason that all of them share stands once."""
    counts = Counter(reason for result in results for reason in result.reasons)
    shared = {reason for reason, count in counts.items() if count == len(results) > 1}
    pairs = (
        (EVERYONE if reason in shared else result.contender, reason) for result in results for reason in result.reasons
    )
    return list(dict.fromkeys(pairs))


def _withhold(result: Result) -> None:
    """Take the numbers off a result."""
    result.verdict, result.summaries, result.repetitions = "", {}, {}


def _refuse_below_floor(result: Result, bounds_ns: Mapping[str, float]) -> None:
    """Take the numbers off a result with a time far below what any program needs for its case."""
    for phase, floor_ns in bounds_ns.items():
        time = result.summaries.get((phase, "time"))
        if time and floors.is_below(time.median, floor_ns):
            reason = f"a pass of {phase} took {time.median / MS:.3g} ms, and the case's floor is {floor_ns / MS:.3g} ms"
            _withhold(result)
            result.reasons.insert(0, str(failed("below-floor", reason)))
            return


def _deviation(records: list[Record]) -> str:
    """The declared deviation of a contender, and the measured size of it."""
    declared = next(record.outcome.deviation for record in records if record.outcome.deviation)
    checks = [check for record in records for check in distance_checks(record)]
    checks = checks or [check for record in records for check in record.checks.values()]
    share = max((check["differing"] / check["compared"] for check in checks if check["compared"]), default=0.0)
    errors = gradient_errors(checks)
    gradients = f", gradients by up to {max(errors):.1e}" if errors else ""
    return f"deviates: {declared} (up to {share:.2%} of the spikes differ{gradients})"


def _case_order(case: Case) -> tuple[Any, ...]:
    kind = (case.PREFIX, case.device, case.dtype, case.precision, case.profile)
    sizes = (case.sites, case.neurons, case.batch, case.time_steps, case.processes)
    constants = case.beta, case.alpha, len(case.trained_constants), case.trained, case.trained_each
    rate = case.input_rate if "input_rate" in case.names() else 0.0  # type: ignore[attr-defined]
    chunks = case.chunk_steps, case.cuts_gradient
    return *kind, *sizes, case.threads, *constants, rate, *chunks, case.key
