"""The answer of a recording in sentences: who leads by how much, who cannot be told apart, and what failed.

The lead of a case is the fastest contender with all that no test calls slower, and is claimed only if the test says so.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snnbench.analysis import race
from snnbench.analysis.comparisons import Side
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.pairs import pairs, side_of, slower
from snnbench.analysis.race import Standing
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.report import wording
from snnbench.report.numbers import between, counted, listed
from snnbench.report.overview import FEW_TRIALS, Overview, Point
from snnbench.units import MS

TEST = Thresholds()
"""The thresholds of a lead: the defaults of `rank` and `compare`."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The leaders of one case (the fastest and all contenders not slower by the test), and the ones behind, by time.

    `failed` contenders have a time, too, but failed in another trial, so they are not ranked. `contended` are leaders
    with a trial that other processes disturbed, so nothing is claimed of them. `race` decided, if trials are unequal
    or single.
    """

    case: Case
    leaders: tuple[Point, ...]
    behind: tuple[Point, ...]
    failed: tuple[str, ...]
    contended: tuple[str, ...]
    race: Standing | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The leaders' names, the fastest first."""
        return tuple(point.contender for point in self.leaders)


def leads(overview: Overview) -> dict[Case, Lead]:
    """The lead of each case: of the exact contenders or, if a case has none, of the equivalent. A lead needs a time.

    A contender follows if the test of `rank` calls it slower than the one with the lowest median. All pairs of
    contenders of the page are tested together. If a recording is a race, or has single trials, the rule of a race
    decides in place of the test.
    """
    ranked = {case: points for case in overview.cases if (points := _ranked(overview, case))}
    fields = [
        (case, overview.headline, {point.contender: _side(overview, point) for point in points})
        for case, points in ranked.items()
    ]
    names = {(case, point.contender) for case, points in ranked.items() for point in points}
    records = [one for one in overview.recording.records if (one.case, one.label) in names]
    races = race.standings(records, overview.headline)
    result = {}
    for (case, _, sides), words in zip(fields, pairs(fields, "", TEST), strict=True):
        first, *others = ranked[case]
        by_race = races.get(case) if overview.recording.is_race or any(p.trials == 1 for p in ranked[case]) else None
        if by_race:
            first, *others = sorted(ranked[case], key=lambda point: point.contender != by_race.leader)
            behind = [other for other in others if other.contender not in by_race.running]
        else:
            behind = [other for other in others if slower(words, other.contender, first.contender)]
        level = [other for other in others if other not in behind]
        failed = [p.contender for p in overview.points(case, overview.headline) if p.ranked and overview.failed(p)]
        contended = tuple(point.contender for point in (first, *level) if sides[point.contender].contended)
        result[case] = Lead(case, (first, *level), tuple(behind), tuple(failed), contended, by_race)
    return result


def ahead(overview: Overview) -> list[str]:
    """The fastest two contenders of each case, the fastest of the first case first."""
    each = ([*lead.leaders, *lead.behind][:2] for lead in leads(overview).values())
    return list(dict.fromkeys(point.contender for two in each for point in two))


def _ranked(overview: Overview, case: Case) -> list[Point]:
    """The contenders without a failed trial that have the best verdict of them, by their medians."""
    points = [point for point in overview.points(case, overview.headline) if not overview.failed(point)]
    by_verdict = ([point for point in points if point.verdict == verdict] for verdict in ("exact", "equivalent"))
    return sorted(next(filter(None, by_verdict), []), key=lambda point: point.value)


def _side(overview: Overview, point: Point) -> Side:
    result = next(one for one in overview.results[point.case] if one.contender == point.contender)
    return side_of(result, overview.headline)


WORDS = {
    "oom-device": "out of device memory",
    "oom-host": "out of host memory",
    "timeout": "timed out",
    "crash": "crashed",
    "environment": "without an environment",
    "import": "not importable",
    "below-floor": "below the floor",
}
"""Kinds of outcome as words of a sentence; the other kinds serve as they are."""
MAX_ANSWERS = 3
"""The most answers of a summary; a summary of more counts the cases that each contender leads."""
UNTIMED = "Nothing was timed: this recording says who does the same work, not how fast."
MAX_LEADERS = 4
"""The most contenders that a tie names."""


def coverage(recording: Recording) -> str:
    """`218 of 240 cells measured: 9 out of device memory, 3 incorrect, 10 unsupported`, and the missing cells."""
    records = recording.records
    others = Counter(str(record.outcome.kind) for record in records if record.status != "measured")
    measured = sum(record.status == "measured" for record in records)
    lacking = f"; {wording.missing(recording)}" if recording.closed else ""
    rest = f"{', ' if recording.unfinished else ': '}{_kinds(others)}" if others else ""
    return f"{wording.measured_of(recording, measured)}{rest}{lacking}"


def _kinds(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {WORDS.get(kind, kind)}" for kind, count in counts.most_common())


def summary(overview: Overview) -> list[str]:
    """Two to five sentences: the answers or, of many, the cases that each contender leads; failed and missing cells."""
    failures = [record for record in overview.recording.records if record.status == "failed"]
    kinds = Counter(str(record.outcome.kind) for record in failures)
    failed = [f"{counted(len(failures), 'cell')} failed: {_kinds(kinds)}."] if failures else []
    if overview.recording.unfinished:
        failed.append(f"{wording.missing(overview.recording)}.")
    if not overview.headline:
        return [UNTIMED, *failed]
    each = answers(overview)
    if len(each) <= MAX_ANSWERS:
        return [*(f"{where[0].upper()}{where[1:]}: {answer}" for where, answer in each), *failed]
    leads_ = list(leads(overview).values())
    ahead = Counter(name for lead in leads_ for name in lead.names)
    named = [f"{name} ({count})" for name, count in ahead.most_common(MAX_LEADERS)]
    others = len(ahead) - len(named)
    named += [counted(others, "other")] if others > 0 else []
    sentences = [f"In front, alone or with others that cannot be told apart, of {len(leads_)} cases: {listed(named)}."]
    if nexts := [lead.behind[0].value / lead.leaders[0].value for lead in leads_ if lead.behind]:
        lasts = [lead.behind[-1].value / lead.leaders[0].value for lead in leads_ if lead.behind]
        sentences.append(f"The next took {between(nexts)} times as long, the slowest {between(lasts)} times.")
    return [*sentences, *failed]


def answers(overview: Overview) -> list[tuple[str, str]]:
    """(cases, sentence) for each run of sizes with the same leaders."""
    leads_ = leads(overview)
    return [answer for cases in overview.settings.values() for answer in _of_setting(overview, cases, leads_)]


def _of_setting(overview: Overview, cases: Sequence[Case], leads_: Mapping[Case, Lead]) -> list[tuple[str, str]]:
    answers = []
    for axis, family in _groups(cases):
        runs: list[list[Lead]] = []
        for lead in (leads_[case] for case in family if case in leads_):
            if runs and set(runs[-1][0].names) == set(lead.names):
                runs[-1].append(lead)
            else:
                runs.append([lead])
        answers += [_answer(overview, run, axis) for run in runs]
    return answers


def _groups(cases: Sequence[Case]) -> list[tuple[str, list[Case]]]:
    """Every case once, in groups that vary along one axis, with that axis."""
    groups, left = [], list(cases)
    for axis in wording.axes(cases):
        for family in wording.families(left, axis):
            if len(family) > 1:
                groups.append((axis, family))
                left = [case for case in left if case not in family]
    return [*groups, *((wording.main_axis(case), [case]) for case in left)]


def _answer(overview: Overview, run: Sequence[Lead], axis: str) -> tuple[str, str]:
    """The cases of a run of leads, and a sentence on their fastest contenders."""
    where = f"{overview.name(run[0].case)}: {wording.sizes_of([one.case for one in run], axis)}"
    leaders = run[0].leaders
    of = "" if leaders[0].verdict == "exact" else f" of the {leaders[0].verdict} ones"
    failed = list(dict.fromkeys(name for one in run for name in one.failed))
    closing = f"{_behind(run)} Left out, for a trial of theirs failed: {listed(failed)}." if failed else _behind(run)
    ms_of: dict[str, list[float]] = {}
    for point in (point for one in run for point in one.leaders):
        ms_of.setdefault(point.contender, []).append(point.value / MS)
    times = [f"{p.contender} ({between(ms_of[p.contender])} ms)" for p in leaders[:MAX_LEADERS]]
    times += [counted(len(leaders) - MAX_LEADERS, "other")] if len(leaders) > MAX_LEADERS else []
    contended = list(dict.fromkeys(name for one in run for name in one.contended))
    if len(leaders) == 1:
        if any(one.behind for one in run):
            surely = " for certain" if run[0].race else ""
            return where, f"{times[0]} leads{of}{surely}.{closing}"
        among = "without a failed trial" if failed else "with a time"
        return where, f"{times[0]} is the only {leaders[0].verdict} one {among}.{closing}"
    if run[0].race:
        return where, f"{_of_race(times, run)}{closing}"
    if contended:
        return where, f"Too close to call{of} between {listed(times)}: others disturbed {listed(contended)}.{closing}"
    certain = f"no difference above {100 * TEST.time_floor:g} %"
    if not any(one.behind for one in run):
        return where, f"Too close to call{of} between {listed(times)}: {certain} is certain.{closing}"
    return where, f"{listed(times)} lead{of}; {certain} between them is certain.{closing}"


def _behind(run: Sequence[Lead]) -> str:
    """By how much the next contender and the last one follow the fastest; empty if none is behind."""
    following = [(one.behind, one.leaders[0]) for one in run if one.behind]
    if not following:
        return ""
    nexts, lasts = ([(behind[place], first) for behind, first in following] for place in (0, -1))
    name = "It" if all(len(one.leaders) == 1 for one in run) else run[0].leaders[0].contender
    words = f" {name} is {_factor(nexts)} times as fast as the next, {_named(nexts)}"
    more = any(len(behind) > 1 for behind, _ in following)
    return f"{words}, and {_factor(lasts)} times as fast as the slowest, {_named(lasts)}." if more else f"{words}."


def _of_race(times: Sequence[str], run: Sequence[Lead]) -> str:
    """A sentence on several leaders of a race."""
    races = [one.race for one in run if one.race]
    first, *others = times
    if all(present.is_certain for present in races):
        return f"{listed(times)} lead: they are surely within {100 * (race.LEVEL - 1):.0f} % of each other."
    if max(present.trials for present in races) == 1:
        what = f"one trial shows no difference below a factor of {race.FACTOR:g}"
    else:
        what = f"{between([present.trials for present in races])} trials cannot tell them apart"
    return f"{first} is in front of {listed(others)}, but {what}."


def _named(pairs: Sequence[tuple[Point, Point]]) -> str:
    return listed(list(dict.fromkeys(point.contender for point, _ in pairs)), "or")


def _factor(pairs: Sequence[tuple[Point, Point]]) -> str:
    return between([point.value / first.value for point, first in pairs])


def trials(overview: Overview) -> str:
    """A sentence on the number of trials, and on the claims that it allows."""
    phase = overview.headline
    counts = [point.trials for case in overview.cases for point in overview.points(case, phase)]
    processes = "1 trial" if max(counts) == 1 else f"{between(counts)} trials, a process each"
    about = f"Times are those of {phase}, medians of {processes}"
    if max(counts) == 1:
        return f"{about}: no interval can be given, and only differences above a factor of {race.FACTOR:g} are certain."
    if overview.recording.is_race:
        return f"{about}; a contender that is surely slower than the leader needed no more."
    certain = f"more than {100 * TEST.time_floor:g} % slower, with a q of at most {100 * TEST.alpha:g} %"
    rough = (
        f" Intervals of fewer than {FEW_TRIALS} trials are too narrow: no lead rests on them."
        if min(counts) < FEW_TRIALS
        else ""
    )
    return f"{about}; a lead is claimed only where the test of snnbench rank finds the others {certain}.{rough}"
