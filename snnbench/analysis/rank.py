"""Rank the contenders of one recording, case by case, by the time or another metric of a phase and against a baseline.

Trials of all contenders were interleaved, so that a disturbance by the machine met all of them. A contender has no rank
if it deviates from the work, failed (even in one trial) or was skipped. It is listed apart, with its reason.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean

from snnbench.adapter.contender import UnknownContender
from snnbench.analysis import race
from snnbench.analysis.comparisons import CONTENDED, CONTENDED_ALLOWED, Comparison, Side
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.difference import intervals
from snnbench.analysis.pairs import Pairs, pairs, side_of, slower
from snnbench.analysis.results import PHASES, Result, headline, results_by_case
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.suggestions import unknown

NOT_TIMED = "not timed in this phase"
Class = tuple[str, str, str, str]
"""(device, profile, dtype, precision): a geometric mean stays within one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender in one case and phase. `comparison` is that with the baseline; None for the baseline itself.

    The fastest contender without a `rank` begins a new rank. The next ones share it, as long as the test calls them not
    slower than any member and on the same side of the baseline. So a rank has one word. `interval` [ns or J] is of the
    geometric mean of trials. A single trial has no interval and no rank; a contended time has no rank.
    """

    contender: str
    side: Side
    interval: tuple[float, float] | None
    rank: int | None
    comparison: Comparison | None
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """All contenders with a number in one phase of one case, by their medians; and (contender, reason) of all others.

    The number is a time in ns, or another metric in its unit.
    """

    case: Case
    phase: str
    entries: list[Entry]
    apart: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Mean:
    """Geometric means of ratios to the baseline over the cases that every ranked contender has, `cases` of `known`.

    Without such a case `ratios` is empty. `lacking` maps contenders to the number of cases that they lack.
    """

    of: Class
    phase: str
    cases: int
    known: int
    ratios: dict[str, float]
    lacking: dict[str, int]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Every ranking of a recording by `metric`, and their means; `allowed` lists the facts that the user allowed.

    `lacking` says how many of the planned cells are there, if not all are.
    """

    recording: str
    baseline: str
    thresholds: Thresholds
    rankings: list[Ranking]
    means: list[Mean]
    allowed: list[str]
    metric: str = "time"
    lacking: str = ""


def rank(
    recording: Recording,
    baseline: str,
    thresholds: Thresholds,
    phases: Collection[str] = (),
    allowed: Collection[str] = (),
    metric: str = "time",
) -> Ranked:
    """Rank every case of a recording in these phases or in all; the p of all pairs are adjusted together.

    `metric` is "time", or a measure that can be ranked.

    `baseline` is a contender, or a library with one contender; if empty, the config's. Contended times have a rank and
    a word only if "contended" is `allowed`. Raises UnknownContender.
    """
    by_case = results_by_case(recording.records)
    name = _baseline(recording, baseline, by_case)
    wanted = [phase for phase in PHASES if not phases or phase in phases]
    drafts = [
        ranking for case, group in by_case.items() for ranking in _drafts(case, group, name, wanted, allowed, metric)
    ]
    rankings = _decided(drafts, name, thresholds, metric)
    if recording.is_race and metric == "time":
        (phase,) = headline(recording.records) or ("",)
        races = race.standings(recording.records, phase)
        rankings = [_raced(ranking, races.get(ranking.case), phase) for ranking in rankings]
    facts = [CONTENDED_ALLOWED] if CONTENDED in allowed else []
    return Ranked(recording.name, name, thresholds, rankings, list(_means(rankings, name)), facts, metric)


def _raced(ranking: Ranking, present: race.Standing | None, phase: str) -> Ranking:
    """The ranking of a race: those that may lead share the first rank, and those that are surely slower have none.

    Only those that may lead were timed in other phases, so nothing is said of the others there.
    """
    if ranking.phase != phase or present is None:
        apart = [(name, reason) for name, reason in ranking.apart if reason != NOT_TIMED]
        return replace(ranking, apart=apart)
    entries = []
    for entry in ranking.entries:
        least = present.slower.get(entry.contender)
        if entry.contender in present.running:
            entries.append(replace(entry, rank=1))
        elif least is None:
            entries.append(replace(entry, rank=None))
        else:
            surely = f"surely at least {least:.3g} times as long as the leader"
            entries.append(replace(entry, rank=None, reason="; ".join(filter(None, (surely, entry.reason)))))
    return replace(ranking, entries=entries)


def _baseline(recording: Recording, wanted: str, by_case: dict[Case, list[Result]]) -> str:
    known = sorted({result.contender for group in by_case.values() for result in group})
    name = wanted or recording.baseline
    if name in known:
        return name
    of_library = [one for one in known if one.partition("/")[0] == name]
    if len(of_library) == 1:
        return of_library[0]
    if not name:
        raise UnknownContender(f"{recording.name}: names no baseline: give --baseline one of {', '.join(known)}")
    raise UnknownContender(f"--baseline: {unknown('contender', name, of_library or known)}")


def _drafts(
    case: Case, group: list[Result], baseline: str, phases: Collection[str], allowed: Collection[str], metric: str
) -> Iterator[Ranking]:
    """Rankings without ranks and words; a case without any number has only contenders that are listed apart."""
    timed = [phase for phase in phases if any((phase, metric) in result.summaries for result in group)]
    for phase in timed:
        sides = {
            one.contender: side_of(one, phase, metric, allowed)
            for one in group
            if one.verdict != "deviates" and not one.failure and _positive(one, phase, metric)
        }
        failed = any(one.contender == baseline and one.failure for one in group)
        lacking = f"{baseline} {'failed' if failed else f'has no {metric} of this work'}"
        entries = []
        for result in (one for one in group if one.contender in sides):
            name = result.contender
            base = sides.get(baseline)
            comparison = None if base else Comparison(case, name, phase, metric, None, sides[name], "missing", lacking)
            remarks = {CONTENDED} if base and sides[name].contended and name != baseline else set()  # by the comparison
            entries.append(Entry(name, sides[name], None, None, comparison, "; ".join(sorted(result.flags - remarks))))
        apart = [(one.contender, _why(one, phase, metric)) for one in group if one.contender not in sides]
        yield Ranking(case, phase, sorted(entries, key=lambda entry: entry.side.summary.median), apart)
    if not timed and (apart := [(one.contender, _why(one, "", metric)) for one in group if one.reasons]):
        yield Ranking(case, "", [], apart)


def _decided(rankings: list[Ranking], baseline: str, thresholds: Thresholds, metric: str) -> list[Ranking]:
    """Rankings with words, intervals and ranks: every pair of contenders is tested, and all p are adjusted together."""
    fields = [(one.case, one.phase, {entry.contender: entry.side for entry in one.entries}) for one in rankings]
    samples = [entry.side.summary.trials for ranking in rankings for entry in ranking.entries]
    ends = iter(intervals(samples, 1 - thresholds.alpha))
    result = []
    for ranking, words in zip(rankings, pairs(fields, baseline, thresholds, metric), strict=True):
        entries = [
            replace(entry, interval=next(ends), comparison=words.get((baseline, entry.contender), entry.comparison))
            for entry in ranking.entries
        ]
        result.append(replace(ranking, entries=_numbered(entries, words)))
    return result


def _numbered(entries: list[Entry], words: Pairs) -> list[Entry]:
    """The entries with their ranks; they must be sorted by median."""
    result: list[Entry] = []
    members: list[Entry] = []
    rank = 0
    for entry in entries:
        if entry.interval is None or entry.side.contended:
            result.append(entry)
            continue
        if (
            not members
            or _side(entry) != _side(members[-1])
            or any(slower(words, entry.contender, member.contender) for member in members)
        ):
            rank, members = 1 + sum(one.rank is not None for one in result), []
        members.append(entry)
        result.append(replace(entry, rank=rank))
    return result


def _side(entry: Entry) -> str:
    """The contender's side of the baseline, slower or faster; "" if the test is inconclusive or says same."""
    return entry.comparison.word if entry.comparison and entry.comparison.word in ("slower", "faster") else ""


def _means(rankings: list[Ranking], baseline: str) -> Iterator[Mean]:
    grouped: dict[tuple[Class, str], list[Ranking]] = {}
    for ranking in rankings:
        case = ranking.case
        kind: Class = (case.device, case.profile, case.dtype, case.precision)
        if ranking.entries:
            grouped.setdefault((kind, ranking.phase), []).append(ranking)
    for (kind, phase), group in grouped.items():
        medians = [{entry.contender: entry.side.summary.median for entry in ranking.entries} for ranking in group]
        names = dict.fromkeys(name for case in medians for name in case)
        shared = [case for case in medians if len(case) == len(names) and baseline in case]
        ratios = {name: geometric_mean([case[name] / case[baseline] for case in shared]) for name in names if shared}
        absent = {name: sum(name not in case for case in medians) for name in dict.fromkeys((*names, baseline))}
        lacking = {name: count for name, count in absent.items() if count}
        yield Mean(kind, phase, len(shared), len(medians), ratios, lacking)


def _positive(result: Result, phase: str, metric: str) -> bool:
    """Whether every trial has a number above 0. Noise may put a net number below 0."""
    summary = result.summaries.get((phase, metric))
    return summary is not None and min(summary.trials) > 0


def _why(result: Result, phase: str, metric: str) -> str:
    """Why a contender is not ranked."""
    if result.failure and result.verdict != "deviates":
        return result.failure
    if result.reasons:
        return result.reasons[0]
    if (phase, metric) in result.summaries:
        return f"noise exceeds its {metric}"
    return NOT_TIMED if metric == "time" else f"no {metric} in this phase"


def geometric_mean(ratios: Sequence[float]) -> float:
    """The geometric mean: inverted ratios give its inverse. Raises ValueError if empty, or if a ratio is 0 or below."""
    if not ratios or min(ratios) <= 0:
        raise ValueError("a geometric mean wants ratios, all above 0")
    return exp(fmean(log(ratio) for ratio in ratios))
