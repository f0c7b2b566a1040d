"""A comparison: a time or memory peak of one contender in one case, on two sides, and its word."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from snnbench import measures
from snnbench.analysis.bootstrap import Interval, bootstrap
from snnbench.analysis.comparability import Incomparable
from snnbench.analysis.decision import WORDS, Thresholds, decide
from snnbench.analysis.difference import Difference, adjusted, between
from snnbench.analysis.movement import Explained
from snnbench.analysis.results import Result, results_by_case
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.worker.durations import Summary

METRICS = {"time": "ns", "host_peak": "bytes", "device_peak": "bytes"}
"""Metrics that are compared, with their units."""
NOISY_METRICS = ("time", *measures.ranked())
"""Metrics that differ from trial to trial as times do: the limits of times hold for them."""
COUNTED_METRICS = ("device_peak",)
"""Metrics that an allocator counts: the same program gives the same number."""
SIDES = ("base", "new")
ABSENT = "not there"
"""Why a side lacks a number that nothing kept it from; a race does not need it."""
CONTENDED = "contended"
"""The flag of a time that other processes disturbed, and the value of --allow that gives such times words."""
CONTENDED_ALLOWED = "contended: times that others disturbed have words, too"


@dataclass(frozen=True, slots=True)
class Side:
    """One recording's numbers in a comparison; `interval` is a bootstrap interval, for times and on request only.

    `contended` names the side if other processes disturbed a trial and the user does not allow that. Such a comparison
    is inconclusive.
    """

    summary: Summary
    repetitions: list[tuple[float, ...]]
    interval: Interval | None = None
    contended: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison and its word; `reason` explains the word if the numbers do not.

    A contender that failed without any number is one comparison without phase and metric. `explained` is the part of
    the ratio that the movement of the machine explains; None if it is unknown.
    """

    case: Case
    contender: str
    phase: str
    metric: str
    base: Side | None
    new: Side | None
    word: str = ""
    reason: str = ""
    difference: Difference | None = None
    q: float | None = None
    explained: Explained | None = None

    @property
    def name(self) -> str:
        """Its contender, its phase and its metric."""
        return " ".join(part for part in (self.contender, self.phase, self.metric) if part)

    @property
    def ratio(self) -> float | None:
        """New over base; None if the two may not be divided."""
        return self.difference.ratio if self.difference else None


Differ = Callable[[Sequence[Comparison], float], list[Difference]]
"""(comparisons with both sides, confidence) -> the difference of each comparison."""


def comparisons_of(
    base: Recording, new: Recording, cases: dict[Case, Case], phases: Collection[str], allowed: Collection[str]
) -> list[Comparison]:
    """The comparisons of two recordings, of these phases or of all; `cases` maps cases of `base` to those of `new`.

    A comparison that cannot be divided has its word already. Raises Incomparable if there is no comparison.
    """
    comparisons = [
        comparison
        for comparison in _comparisons(base, new, cases, allowed)
        if not phases or comparison.phase in ("", *phases)
    ]
    if not comparisons:
        what = f"of {' or '.join(phases)} " if phases else ""
        raise Incomparable(f"neither {base.name} nor {new.name} has a time or peak {what}to compare")
    return comparisons


def unpaired(comparisons: Sequence[Comparison], confidence: float) -> list[Difference]:
    """The difference of each comparison, of sides measured apart. A side in several comparisons counts once."""
    both = [sides_of(comparison) for comparison in comparisons]
    sides = {id(side): side for pair in both for side in pair}
    positions = {name: position for position, name in enumerate(sides)}
    pairs = [(positions[id(base)], positions[id(new)]) for base, new in both]
    samples = [side.summary.trials for side in sides.values()]
    return between(samples, pairs, confidence, [comparison.metric in COUNTED_METRICS for comparison in comparisons])


def judged(comparisons: list[Comparison], thresholds: Thresholds, differ: Differ = unpaired) -> list[Comparison]:
    """The comparisons, each with its difference, q and word. A comparison that has a word already keeps it.

    Variances are moderated over all times, and over all peaks. A comparison with a contended side takes no part in q,
    and is inconclusive.
    """
    differences: dict[int, Difference] = {}
    for timed in (True, False):
        numbers = [
            n
            for n, comparison in enumerate(comparisons)
            if not comparison.word and (comparison.metric in NOISY_METRICS) is timed
        ]
        some = differ([comparisons[number] for number in numbers], 1 - thresholds.alpha)
        differences |= dict(zip(numbers, some, strict=True))
    p = [None if disturbance(comparisons[number]) else difference.p for number, difference in differences.items()]
    q = dict(zip(differences, adjusted(p), strict=True))
    result = list(comparisons)
    for number, difference in differences.items():
        comparison = comparisons[number]
        floor = thresholds.time_floor if comparison.metric in NOISY_METRICS else thresholds.memory_floor
        word, reason = decide(difference, q[number], floor, thresholds.alpha)
        if hindrance := disturbance(comparison):
            word, reason = "inconclusive", "; ".join(part for part in (difference.lacking, hindrance) if part)
        reason = "; ".join(part for part in (reason, comparison.reason) if part)
        result[number] = replace(comparison, word=word, reason=reason, difference=difference, q=q[number])
    return result


def disturbance(comparison: Comparison) -> str:
    """Why a contended comparison has no word; "" if neither side is contended."""
    names = dict.fromkeys(side.contended for side in (comparison.base, comparison.new) if side and side.contended)
    advice = "run again on a quieter machine, or --allow contended"
    return f"contended in {' and '.join(names)}: {advice}" if names else ""


def _comparisons(
    base: Recording, new: Recording, cases: dict[Case, Case], allowed: Collection[str]
) -> Iterator[Comparison]:
    """The comparisons of all contenders. One that cannot be divided has its word; the others are still to be judged."""
    before, after = results_by_case(base.records), results_by_case(new.records)
    others = {one: case for case, one in cases.items()}
    unneeded = {f"in {side}: {ABSENT}" for side, one in zip(SIDES, (base, new), strict=True) if one.is_race}
    for case in [*before, *(case for case in after if case not in others)]:
        olds = {result.contender: result for result in before.get(case, [])}
        news = {result.contender: result for result in after.get(cases.get(case, case), [])}
        for name in dict.fromkeys((*olds, *news)):
            each = _of_contender(case, name, olds.get(name), news.get(name), allowed)
            yield from (one for one in each if one.reason not in unneeded)


def _of_contender(
    case: Case, name: str, old: Result | None, new: Result | None, allowed: Collection[str]
) -> Iterator[Comparison]:
    result = dict(zip(SIDES, (old, new), strict=True))
    metrics = dict.fromkeys(key for side in result.values() if side for key in side.summaries if key[1] in METRICS)
    failures = {where: _reason(side, "failed") for where, side in result.items() if _reason(side, "failed")}
    deviating = [where for where, side in result.items() if side and side.verdict == "deviates"]
    failure_said = False
    for phase, metric in metrics:
        base, other = (_side(side, phase, metric, where, allowed) for where, side in result.items())
        lacking = next((where for where, side in zip(SIDES, (base, other), strict=True) if side is None), None)
        word = reason = ""
        if lacking:
            word = "failed" if lacking in failures else "missing"
            reason = failures.get(lacking) or _reason(result[lacking], "skipped") or ABSENT
            reason = f"in {lacking}: {reason}"
            failure_said = failure_said or word == "failed"
        elif len(deviating) == 1:
            word, reason = "incomparable", f"deviates from the case's work in {deviating[0]} only"
        elif old and new and old.deviation != new.deviation:
            word, reason = "incomparable", f"deviates otherwise: {old.deviation} in base, {new.deviation} in new"
        else:
            sides = zip(SIDES, (base, other), strict=True)
            reason = "; ".join(text for where, side in sides for text in _flags(result[where], side, where))
        yield Comparison(case, name, phase, metric, base, other, word, reason)
    if failures and not failure_said:
        reasons = "; ".join(f"in {where}: {reason}" for where, reason in failures.items())
        yield Comparison(case, name, "", "", None, None, "failed", reasons)


def sides_of(comparison: Comparison) -> tuple[Side, Side]:
    """Both sides of a comparison that has both. Raises ValueError."""
    if comparison.base is None or comparison.new is None:
        raise ValueError(f"{comparison.contender}: one side only, and no word that says so")
    return comparison.base, comparison.new


def _side(result: Result | None, phase: str, metric: str, where: str, allowed: Collection[str]) -> Side | None:
    summary = result.summaries.get((phase, metric)) if result else None
    if result is None or summary is None:
        return None
    if metric != "time":
        return Side(summary, [])
    contended = where if CONTENDED in result.flags and CONTENDED not in allowed else ""
    return Side(summary, result.repetitions.get(phase, []), contended=contended)


def _flags(result: Result | None, side: Side | None, where: str) -> list[str]:
    """The flags of a side, without a `contended` that decides its word."""
    left_out = {CONTENDED} if side and side.contended else set()
    flags = sorted(result.flags - left_out) if result else []
    return [f"{' and '.join(flags)} in {where}"] if flags else []


def _reason(result: Result | None, status: str) -> str:
    """The first reason of a result with this status (failed or skipped), or ""."""
    reasons = result.reasons if result else []
    return next((reason for reason in reasons if reason.startswith(f"{status}: ")), "")


def with_intervals(comparisons: list[Comparison]) -> list[Comparison]:
    """The comparisons, with a bootstrap interval for each side of every time."""
    sides = [
        side for comparison in comparisons for side in (comparison.base, comparison.new) if side and side.repetitions
    ]
    intervals = dict(zip(map(id, sides), bootstrap([side.repetitions for side in sides], seed=0), strict=True))

    def known(side: Side | None) -> Side | None:
        return replace(side, interval=intervals[id(side)]) if side and id(side) in intervals else side

    return [replace(comparison, base=known(comparison.base), new=known(comparison.new)) for comparison in comparisons]


def by_interest(comparisons: list[Comparison]) -> list[Comparison]:
    """The comparisons in the order of WORDS, then largest effects first."""
    return sorted(
        comparisons,
        key=lambda comparison: (
            WORDS.index(comparison.word),
            -abs(log(comparison.ratio)) if comparison.ratio is not None else 0.0,
        ),
    )
