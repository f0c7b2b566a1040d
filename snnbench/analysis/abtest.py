"""An A/B test: the two sides of a recording took turns, and are compared pair by pair.

A pair is a trial of base and the same trial of new, whose processes did each repetition in turn, the first of them
drawn. Whatever the machine did meets both alike, and what is left moves a difference in either direction as often.
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
from snnbench.analysis.compare import (
    CONTENDED,
    CONTENDED_ALLOWED,
    COUNTED,
    Cell,
    Comparison,
    Side,
    by_interest,
    cells_of,
    judged,
    sides_of,
    with_intervals,
)
from snnbench.analysis.decision import ADVICE, Thresholds
from snnbench.analysis.difference import Difference, paired
from snnbench.analysis.looks import Look, looks
from snnbench.plan.side import SIDES
from snnbench.recording.drift import DRIFTED
from snnbench.recording.record import Record, Recording, RecordingError
from snnbench.workloads.case import Case
from snnbench.workloads.outcome import DISPROVED

APART_S = 600.0
"""Seconds from the end of one side to the start of the other, from which on they are no pair. A cell may wait for
another run of snnbench on the machine."""
MOST_ADVISED = 200
"""Trials a side: nobody runs more."""
CellName = tuple[Case, str, str, str]
"""(case, contender, phase, metric)."""


@dataclass(frozen=True, slots=True)
class Trials:
    """How many trials a side takes at most, and whether a work that has its words takes fewer."""

    most: int
    stops_early: bool

    def looks(self, alpha: float) -> list[Look]:
        """The looks of the run."""
        return list(looks(self.most, alpha, self.stops_early))


@dataclass(frozen=True, slots=True)
class Rule:
    """How words are decided: thresholds, the phases that are asked of (all if none), and what is allowed."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    phases: Collection[str] = ()
    allowed: Collection[str] = ()


def recorded_rule(config: Mapping[str, Any]) -> Rule:
    """The rule of the run that wrote this config.json."""
    decides = config.get("decides", {})
    limits = {name: decides[name] for name in ("time_floor", "alpha") if name in decides}
    return Rule(Thresholds(**limits), tuple(decides.get("phases", ())), tuple(decides.get("allowed", ())))


def compare_sides(recording: Recording, rule: Rule | None = None, explained: bool = False) -> Comparison:
    """Every cell of a recording of two sides, by the looks that were taken, and as the run decided if nothing is said.

    Raises RecordingError, Incomparable.
    """
    changes = recording.config.get("sides")
    if not changes:
        raise RecordingError(f"{recording.folder}: holds no two sides; name two recordings to compare")
    rule = rule or recorded_rule(recording.config)
    old_title, new_title = (" ".join(changes.get(side, ())) or "as pinned" for side in SIDES)
    cells = [_with_advice(cell, rule.thresholds.time_floor) for cell in settled(recording, rule)]
    if explained:
        cells = with_intervals(cells)
    base, new = (_side(recording, recording.records, side) for side in SIDES)
    facts = [CONTENDED_ALLOWED] if CONTENDED in rule.allowed else []
    return Comparison(old_title, new_title, rule.thresholds, facts, changed(base, new), by_interest(cells))


def settled(recording: Recording, rule: Rule, most: int | None = None) -> list[Cell]:
    """The cells of a recording, each with its word; by its first `most` trials, or by all. Raises Incomparable."""
    return decided(lambda look: _at(recording, look, rule), taken(recording, rule.thresholds.alpha, most))


def decided(at: Callable[[Look], list[Cell]], some: Iterable[Look]) -> list[Cell]:
    """The cells, each with the word of the first look that gave it one, or else that of the last; `at` judges them."""
    words: dict[CellName, Cell] = {}
    latest: dict[CellName, Cell] = {}
    for look in some:
        for cell in at(look):
            name = (cell.case, cell.contender, cell.phase, cell.metric)
            latest[name] = cell
            if cell.word != "inconclusive":
                words.setdefault(name, cell)
    return [words.get(name, cell) for name, cell in latest.items()]


def undecided(recording: Recording, rule: Rule, most: int | None = None) -> set[Work]:
    """The works that further trials may still give a word: a time of theirs is inconclusive. `most` as in `settled`."""
    try:
        cells = settled(recording, rule, most)
    except Incomparable:  # nothing was timed, and more trials time nothing either
        return set()
    open_names = {(cell.case, cell.contender) for cell in cells if (cell.word, cell.metric) == ("inconclusive", "time")}
    works = {(one.case, _plain(one)): one for one in recording.records}
    return {Work(case, works[case, name].library, works[case, name].variant) for case, name in open_names}


def planned_trials(config: Mapping[str, Any]) -> Trials:
    """How a recording with this config.json was planned. Raises RecordingError."""
    try:
        return Trials(int(config["config"]["protocol"]["trials"]), bool(config["stops_early"]))
    except (LookupError, TypeError, ValueError) as error:
        raise RecordingError("config.json: does not say how many trials were planned") from error


def taken(recording: Recording, alpha: float, most: int | None = None) -> Iterator[Look]:
    """The looks at the first `most` trials, or those for which some work has its trials; the first one at the least."""
    if most is None:
        most = max((one.trial + 1 for one in recording.records if one.measure == "time"), default=0)
    plan = planned_trials(recording.config).looks(alpha)
    before = [look for look in plan if look.trials <= most]
    yield from before or plan[:1]


def _at(recording: Recording, look: Look, rule: Rule) -> list[Cell]:
    """The cells as a look at the first trials judges them, but for what any trial found of the work itself."""
    records = [
        one
        for one in recording.records
        if one.measure != "time" or one.trial < look.trials or one.outcome.get("kind") in DISPROVED
    ]
    records, left_out = _in_pairs(records, CONTENDED in rule.allowed)
    base, new = (_side(recording, records, side) for side in SIDES)
    both = {one.case for one in base.records} & {one.case for one in new.records}
    cases = {case: case for case in dict.fromkeys(one.case for one in records) if case in both}
    try:
        cells = cells_of(base, new, cases, rule.phases, rule.allowed)
    except Incomparable:
        reasons = (f"{one.outcome['kind']}: {one.outcome['reason']}" for one in records if one.status != "measured")
        why = next(reasons, "no pair is whole")
        raise Incomparable(f"{recording.folder}: nothing to compare: {why}") from None
    cells = [_with_reason(cell, left_out.get((cell.case, cell.contender), 0)) for cell in cells]
    return judged(cells, replace(rule.thresholds, alpha=look.alpha), differ=pair_by_pair)


def pair_by_pair(cells: Sequence[Cell], confidence: float) -> list[Difference]:
    """The difference of each cell, whose trials are pairs. Phases of one process are of different families."""
    trials = [_beside(*sides_of(cell)) for cell in cells]
    families = [(cell.phase, cell.metric) for cell in cells]
    counted = [cell.metric in COUNTED for cell in cells]
    return paired(trials, confidence, families, counted)


def _beside(base: Side, new: Side) -> tuple[Sequence[float], Sequence[float]]:
    """The trials of base, and those of new as many times as long as the median repetition was beside that of base.

    What the machine does from one repetition to the next meets neighbours alike, and medians of different moments not.
    """
    before, after = base.summary.trials, new.summary.trials
    if not len(before) == len(base.repetitions) == len(new.repetitions):
        return before, after
    pairs = zip(before, base.repetitions, new.repetitions, strict=True)
    return before, [
        trial * median(later / one for one, later in zip(old, other, strict=False)) for trial, old, other in pairs
    ]


def _in_pairs(records: Sequence[Record], with_contended: bool) -> tuple[list[Record], dict[tuple[Case, str], int]]:
    """The records without measured ones that lack a measured other side, and without pairs that others disturbed.

    Pairs that took turns all count. Where none is undisturbed those disturbed stay, and their flag decides; where one
    side was never measured the other stays. Also, by case and contender, how many pairs were left out.
    """
    pairs: dict[tuple[Any, ...], dict[str, Record]] = defaultdict(dict)
    works: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for record in records:
        work = (record.case, _plain(record), record.measure)
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
    """The pair without the flags of what knows no side: where both took turns, others disturb either as often."""
    if not all(one.settings.get("turns") for one in pair):
        return list(pair)
    return [replace(one, flags=[flag for flag in one.flags if flag not in (CONTENDED, DRIFTED)]) for one in pair]


def _is_whole(pair: Sequence[Record]) -> bool:
    """Whether both sides were measured, one right after the other: not so where a run was stopped between them."""
    if len(pair) < len(SIDES) or any(one.status != "measured" or not one.started for one in pair):
        return len(pair) == len(SIDES) and all(one.status == "measured" for one in pair)
    first, second = sorted(pair, key=lambda one: one.started)
    between = datetime.fromisoformat(second.started) - datetime.fromisoformat(first.started)
    return between.total_seconds() - (second.wall_s or 0.0) <= APART_S


def _with_reason(cell: Cell, left_out: int) -> Cell:
    if not left_out or cell.metric != "time":
        return cell
    text = f"{left_out} pair{'s' * (left_out > 1)} left out: contended"
    return replace(cell, reason="; ".join(part for part in (cell.reason, text) if part))


def _with_advice(cell: Cell, floor: float) -> Cell:
    """The cell with the number of trials that would give it a word, where its times have none yet."""
    difference = cell.difference
    if cell.metric != "time" or difference is None or difference.low is None or ADVICE not in cell.reason:
        return cell
    needed = trials_needed(difference, sides_of(cell)[0].summary.count, floor)
    advice = f"about {needed} trials a side would tell" if needed else f"{MOST_ADVISED} trials a side would not tell"
    return replace(cell, reason=cell.reason.replace(ADVICE, advice))


def trials_needed(difference: Difference, count: int, floor: float) -> int | None:
    """How many pairs would give a word, if further ones are like these `count`; None for more than MOST_ADVISED.

    The interval of a mean of logarithms narrows with the root of their number: until it leaves out 0, where the mean is
    beyond the floor, and else until it lies within the floor.
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
    """One side as a recording of its own, whose records name contenders without it."""
    own = [replace(one, side="") for one in records if one.side == side]
    return replace(recording, records=own, attempts=[], disproved=[])


def _plain(record: Record) -> str:
    """The contender's name without the side."""
    return label(record.library, record.variant)
