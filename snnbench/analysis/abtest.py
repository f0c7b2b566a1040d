"""An A/B test compares the two sides of one recording, pair by pair.

A pair is a trial of base and the same trial of new. Their two processes take turns at every repetition, and the first
of them is drawn. A disturbance by the machine meets both sides alike; the rest moves a difference in either direction
as often.

Pairs of trials decide: both records of a pair count, or none.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil, log, log1p
from statistics import median
from typing import Any

from snnbench.adapter.contender import Work, label
from snnbench.analysis.comparability import Incomparable, changed
from snnbench.analysis.compare import Comparisons
from snnbench.analysis.comparisons import (
    CONTENDED,
    CONTENDED_ALLOWED,
    COUNTED_METRICS,
    Comparison,
    Side,
    by_interest,
    comparisons_of,
    judged,
    sides_of,
    with_intervals,
)
from snnbench.analysis.decision import ADVICE, Thresholds
from snnbench.analysis.difference import Difference, paired
from snnbench.analysis.looks import Look, looks
from snnbench.cases.case import Case
from snnbench.plan.side import SIDES
from snnbench.recording.drift import DRIFTED
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record, RecordingError

APART_S = 600.0
"""Longest time [s] from the end of one side to the start of the other within a pair. A cell may wait for another run
of snnbench on the machine."""


def in_pairs(records: Sequence[Record], with_contended: bool) -> tuple[list[Record], dict[tuple[Case, str], int]]:
    """(records that count, number of disturbed pairs left out by case and contender).

    A measured record counts if the other side of its trial was measured. Disturbed pairs are left out. If all pairs of
    a work are disturbed, they stay and their flag decides. If one side was never measured, the other side stays. Pairs
    that took turns all count.
    """
    pairs: dict[tuple[Any, ...], dict[str, Record]] = defaultdict(dict)
    works: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for record in records:
        work = (record.case, plain_label(record), record.measure)
        if not pairs[*work, record.trial]:
            works[work].append((*work, record.trial))
        pairs[*work, record.trial][record.side] = record
    counted: list[Record] = []
    left_out: dict[tuple[Case, str], int] = {}
    for (case, name, _), trials in works.items():
        both = [list(pairs[trial].values()) for trial in trials]
        whole = [pair for pair in both if _is_whole(pair)]
        whole = [_less_common(pair) for pair in whole]
        quiet = [pair for pair in whole if with_contended or not any(CONTENDED in record.flags for record in pair)]
        failing = [[record for record in pair if record.status != "measured"] for pair in both]
        halves = (
            [] if {record.side for pair in both for record in pair if record.status == "measured"} == {*SIDES} else both
        )
        counted += [
            record for pair in ((*(quiet or whole), *failing) if whole else halves or failing) for record in pair
        ]
        if quiet and len(quiet) < len(whole):
            left_out[case, name] = len(whole) - len(quiet)
    return counted, left_out


def _less_common(pair: Sequence[Record]) -> list[Record]:
    """The pair; if both sides took turns, without `contended` and drift, which disturb either side as often."""
    if not all(one.settings.get("turns") for one in pair):
        return list(pair)
    return [replace(one, flags=[flag for flag in one.flags if flag not in (CONTENDED, DRIFTED)]) for one in pair]


def _is_whole(pair: Sequence[Record]) -> bool:
    """Whether both sides were measured, at most APART_S apart: a run may have stopped between them."""
    if len(pair) < len(SIDES) or any(one.status != "measured" or not one.started for one in pair):
        return len(pair) == len(SIDES) and all(one.status == "measured" for one in pair)
    first, second = sorted(pair, key=lambda one: one.started)
    between = datetime.fromisoformat(second.started) - datetime.fromisoformat(first.started)
    return between.total_seconds() - (first.wall_s or 0.0) <= APART_S


def plain_label(record: Record) -> str:
    """The contender's name without the side."""
    return label(record.library, record.variant)


MOST_ADVISED = 200
"""Most trials a side that a reason advises."""
CellName = tuple[Case, str, str, str]
"""(case, contender, phase, metric)."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Most trials a side, and whether a work stops early once it has its words."""

    most: int
    stops_early: bool

    def looks(self, alpha: float) -> list[Look]:
        """The looks of the run."""
        return list(looks(self.most, alpha, self.stops_early))


@dataclass(frozen=True, slots=True)
class Rule:
    """How words are decided: thresholds, phases (all if empty), and the facts that the user allows."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    phases: Collection[str] = ()
    allowed: Collection[str] = ()


def recorded_rule(config: Mapping[str, Any]) -> Rule:
    """The rule of the run that wrote this config.json."""
    decides = config.get("decides", {})
    limits = {name: decides[name] for name in ("time_floor", "alpha") if name in decides}
    return Rule(Thresholds(**limits), tuple(decides.get("phases", ())), tuple(decides.get("allowed", ())))


def compare_sides(recording: Recording, rule: Rule | None = None, explained: bool = False) -> Comparisons:
    """All comparisons of a recording of two sides, by the looks that were taken. Without `rule`, its own rule decides.

    Raises RecordingError, Incomparable.
    """
    changes = recording.sides
    if not changes:
        raise RecordingError(f"{recording.folder}: holds no two sides; name two recordings to compare")
    rule = rule or recorded_rule(recording.config)
    old_title, new_title = (" ".join(changes.get(side, ())) or "as pinned" for side in SIDES)
    comparisons = [_with_advice(comparison, rule.thresholds.time_floor) for comparison in settled(recording, rule)]
    if explained:
        comparisons = with_intervals(comparisons)
    base, new = (_side(recording, recording.records, side) for side in SIDES)
    facts = [CONTENDED_ALLOWED] if CONTENDED in rule.allowed else []
    return Comparisons(old_title, new_title, rule.thresholds, facts, changed(base, new), by_interest(comparisons))


def settled(recording: Recording, rule: Rule, most: int | None = None) -> list[Comparison]:
    """The comparisons of a recording with their words, by its first `most` trials or by all. Raises Incomparable."""
    return decided(lambda look: _at(recording, look, rule), taken(recording, rule.thresholds.alpha, most))


def decided(at: Callable[[Look], list[Comparison]], some: Iterable[Look]) -> list[Comparison]:
    """The comparisons, each from its first conclusive look or else from the last one; `at` judges them at a look."""
    words: dict[CellName, Comparison] = {}
    latest: dict[CellName, Comparison] = {}
    for look in some:
        for comparison in at(look):
            name = (comparison.case, comparison.contender, comparison.phase, comparison.metric)
            latest[name] = comparison
            if comparison.word != "inconclusive":
                words.setdefault(name, comparison)
    return [words.get(name, comparison) for name, comparison in latest.items()]


def undecided(recording: Recording, rule: Rule, most: int | None = None) -> set[Work]:
    """The works with an inconclusive time, which further trials may still decide. `most` as in `settled`."""
    try:
        comparisons = settled(recording, rule, most)
    except Incomparable:  # nothing was timed, and more trials would not change that
        return set()
    open_names = {
        (comparison.case, comparison.contender)
        for comparison in comparisons
        if (comparison.word, comparison.metric) == ("inconclusive", "time")
    }
    works = {(one.case, plain_label(one)): one for one in recording.records}
    return {Work(case, works[case, name].library, works[case, name].variant) for case, name in open_names}


def planned_trials(config: Mapping[str, Any]) -> Trials:
    """The planned trials of a recording with this config.json. Raises RecordingError."""
    try:
        return Trials(int(config["config"]["protocol"]["trials"]), bool(config["stops_early"]))
    except (LookupError, TypeError, ValueError) as error:
        raise RecordingError("config.json: does not say how many trials were planned") from error


def taken(recording: Recording, alpha: float, most: int | None = None) -> Iterator[Look]:
    """The looks up to `most` trials, or up to the most trials that any work has. Yields at least the first look."""
    if most is None:
        most = max((one.trial + 1 for one in recording.records if one.measure == "time"), default=0)
    plan = planned_trials(recording.config).looks(alpha)
    before = [look for look in plan if look.trials <= most]
    yield from before or plan[:1]


def _at(recording: Recording, look: Look, rule: Rule) -> list[Comparison]:
    """The comparisons as a look judges them: by its first trials, and by an outcome in DISPROVED of any trial."""
    records = [
        one for one in recording.records if one.measure != "time" or one.trial < look.trials or one.outcome.disproved
    ]
    records, left_out = in_pairs(records, CONTENDED in rule.allowed)
    base, new = (_side(recording, records, side) for side in SIDES)
    both = {one.case for one in base.records} & {one.case for one in new.records}
    cases = {case: case for case in dict.fromkeys(one.case for one in records) if case in both}
    try:
        comparisons = comparisons_of(base, new, cases, rule.phases, rule.allowed)
    except Incomparable:
        reasons = (f"{one.outcome.kind}: {one.outcome.reason}" for one in records if one.status != "measured")
        why = next(reasons, "no pair is whole")
        raise Incomparable(f"{recording.folder}: nothing to compare: {why}") from None
    comparisons = [
        _with_reason(comparison, left_out.get((comparison.case, comparison.contender), 0)) for comparison in comparisons
    ]
    return judged(comparisons, replace(rule.thresholds, alpha=look.alpha), differ=pair_by_pair)


def pair_by_pair(comparisons: Sequence[Comparison], confidence: float) -> list[Difference]:
    """The paired difference of each comparison. Each phase and metric is a family, for one process runs all phases."""
    trials = [_beside(*sides_of(comparison)) for comparison in comparisons]
    families = [(comparison.phase, comparison.metric) for comparison in comparisons]
    counted = [comparison.metric in COUNTED_METRICS for comparison in comparisons]
    return paired(trials, confidence, families, counted)


def _beside(base: Side, new: Side) -> tuple[Sequence[float], Sequence[float]]:
    """(trials of base, each trial of base times the median over repetitions of new / base).

    A disturbance by the machine meets neighbouring repetitions alike. It does not meet medians of different moments
    alike. If the repetitions are incomplete, the trials of new are returned unchanged.
    """
    before, after = base.summary.trials, new.summary.trials
    if not len(before) == len(base.repetitions) == len(new.repetitions):
        return before, after
    pairs = zip(before, base.repetitions, new.repetitions, strict=True)
    return before, [
        trial * median(later / one for one, later in zip(old, other, strict=False)) for trial, old, other in pairs
    ]


def _with_reason(comparison: Comparison, left_out: int) -> Comparison:
    if not left_out or comparison.metric != "time":
        return comparison
    text = f"{left_out} pair{'s' * (left_out > 1)} left out: contended"
    return replace(comparison, reason="; ".join(part for part in (comparison.reason, text) if part))


def _with_advice(comparison: Comparison, floor: float) -> Comparison:
    """The comparison; if its time is inconclusive, its reason says how many trials would decide it."""
    difference = comparison.difference
    if comparison.metric != "time" or difference is None or difference.low is None or ADVICE not in comparison.reason:
        return comparison
    needed = trials_needed(difference, sides_of(comparison)[0].summary.count, floor)
    advice = f"about {needed} trials a side would tell" if needed else f"{MOST_ADVISED} trials a side would not tell"
    return replace(comparison, reason=comparison.reason.replace(ADVICE, advice))


def trials_needed(difference: Difference, count: int, floor: float) -> int | None:
    """How many pairs would give a word, if further pairs are like these `count`; None for more than MOST_ADVISED.

    The interval of a mean of logarithms narrows with the root of the number of pairs. If the mean is beyond the floor,
    the interval must exclude 0. Otherwise it must lie within the floor.
    """
    if difference.low is None or difference.high is None:
        raise ValueError("nothing was tested")
    low, high, limit = log(difference.low), log(difference.high), log1p(floor)
    mean, reach = abs(low + high) / 2, (high - low) / 2
    room = mean if mean > limit else limit - mean
    if room * (MOST_ADVISED / count) ** 0.5 <= reach:
        return None
    return max(count + 1, ceil(count * (reach / room) ** 2))


def _side(recording: Recording, records: Sequence[Record], side: str) -> Recording:
    """One side as a recording of its own; its records name contenders without the side."""
    own = [replace(one, side="") for one in records if one.side == side]
    return replace(recording, records=own, attempts=[], disproved=[])
