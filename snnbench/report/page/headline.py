"""The headline section: the outcomes of cells, and the fastest contenders by case, claimed only if the test says so."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from snnbench.analysis.cells import Side
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.pairs import pairs, slower, times
from snnbench.recording.record import Record
from snnbench.report import wording
from snnbench.report.findings import FEW_TRIALS, Findings, Point
from snnbench.report.numbers import between, counted, listed
from snnbench.report.section import Section
from snnbench.units import MS
from snnbench.workloads.case import Case

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
MAX_ANSWERS = 40
MAX_LEADERS = 4
"""The most contenders that a tie names."""
TEST = Thresholds()
"""The thresholds of a lead: the defaults of `rank` and `compare`."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The leaders of one case (the fastest and all contenders not slower by the test), and the next one, if any.

    `failed` contenders have a time, too, but failed in another trial, so they are not ranked. `contended` are leaders
    with a trial that other processes disturbed, so nothing is claimed of them.
    """

    case: Case
    leaders: tuple[Point, ...]
    following: Point | None
    failed: tuple[str, ...]
    contended: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The leaders' names, the fastest first."""
        return tuple(point.contender for point in self.leaders)


def section(findings: Findings) -> Section:
    """Coverage, and for each setting the fastest at each size."""
    leads_ = leads(findings)
    answers = [answer for cases in findings.settings.values() for answer in _answers(findings, cases, leads_)]
    sentences = [f"{words(findings.recording.records)}."]
    if findings.recording.torn:
        torn = counted(findings.recording.torn, "line")
        sentences.append(f"{torn} of the recording could not be read: a kill or a full disk tore them.")
    if not findings.headline:
        sentences.append("Nothing was timed: this recording says who does the same work, not how fast.")
        return Section("answer", "In short", sentences)
    sentences.append(_trials(findings))
    left = len(answers) - MAX_ANSWERS
    closing = [f"{left} more are in the tables below."] if left > 0 else []
    return Section("answer", "In short", sentences, answers=answers[:MAX_ANSWERS], closing=closing)


def words(records: Iterable[Record]) -> str:
    """`218 of 240 cells measured: 9 out of device memory, 3 incorrect, 10 unsupported`."""
    records = list(records)
    others = Counter(str(record.outcome.kind) for record in records if record.status != "measured")
    measured = sum(record.status == "measured" for record in records)
    rest = ", ".join(f"{count} {WORDS.get(kind, kind)}" for kind, count in others.most_common())
    return f"{measured} of {counted(len(records), 'cell')} measured" + (f": {rest}" if rest else "")


def leads(findings: Findings) -> dict[Case, Lead]:
    """The lead of each case: of the exact contenders or, if a case has none, of the equivalent. A lead needs a time.

    A contender follows if the test of `rank` calls it slower than the one with the lowest median. All pairs of
    contenders of the page are tested together.
    """
    ranked = {case: points for case in findings.cases if (points := _ranked(findings, case))}
    fields = [
        (case, findings.headline, {point.contender: _side(findings, point) for point in points})
        for case, points in ranked.items()
    ]
    result = {}
    for (case, _, sides), words in zip(fields, pairs(fields, "", TEST), strict=True):
        first, *others = ranked[case]
        behind = [other for other in others if slower(words, other.contender, first.contender)]
        level = [other for other in others if other not in behind]
        failed = [p.contender for p in findings.points(case, findings.headline) if p.ranked and findings.failed(p)]
        contended = tuple(point.contender for point in (first, *level) if sides[point.contender].contended)
        result[case] = Lead(case, (first, *level), behind[0] if behind else None, tuple(failed), contended)
    return result


def _ranked(findings: Findings, case: Case) -> list[Point]:
    """The contenders without a failed trial that have the best verdict of them, by their medians."""
    points = [point for point in findings.points(case, findings.headline) if not findings.failed(point)]
    by_verdict = ([point for point in points if point.verdict == verdict] for verdict in ("exact", "equivalent"))
    return sorted(next(filter(None, by_verdict), []), key=lambda point: point.value)


def _side(findings: Findings, point: Point) -> Side:
    result = next(one for one in findings.results[point.case] if one.contender == point.contender)
    return times(result, findings.headline)


def _answers(findings: Findings, cases: Sequence[Case], leads_: Mapping[Case, Lead]) -> list[tuple[str, str]]:
    """An answer for each run of sizes with the same leaders."""
    answers = []
    for axis, family in _groups(cases):
        runs: list[list[Lead]] = []
        for lead in (leads_[case] for case in family if case in leads_):
            if runs and set(runs[-1][0].names) == set(lead.names):
                runs[-1].append(lead)
            else:
                runs.append([lead])
        answers += [_answer(findings, run, axis) for run in runs]
    return answers


def _groups(cases: Sequence[Case]) -> list[tuple[str, list[Case]]]:
    """Every case once, in groups that vary along one axis, with that axis."""
    groups, left = [], list(cases)
    for axis in wording.SIZES:
        for family in wording.families(left, axis):
            if len(family) > 1:
                groups.append((axis, family))
                left = [case for case in left if case not in family]
    return [*groups, *(("neurons", [case]) for case in left)]


def _answer(findings: Findings, run: Sequence[Lead], axis: str) -> tuple[str, str]:
    """The cases of a run of leads, and a sentence on their fastest contenders."""
    sizes = listed([str(wording.size(one.case, axis)) for one in run])
    rest = wording.sizes(run[0].case, axis)
    where = f"{findings.name(run[0].case)}, {wording.SIZES[axis]}={sizes}" + (f", {rest}" if rest else "")
    leaders = run[0].leaders
    of = "" if leaders[0].verdict == "exact" else f" of the {leaders[0].verdict}"
    failed = list(dict.fromkeys(name for one in run for name in one.failed))
    closing = f" Left out, for a trial of theirs failed: {listed(failed)}." if failed else ""
    if len(leaders) > 1:
        named = [f"{p.contender} ({_times([_of(one, p.contender) for one in run])})" for p in leaders[:MAX_LEADERS]]
        named += [counted(len(leaders) - MAX_LEADERS, "other")] if len(leaders) > MAX_LEADERS else []
        alone = any(point.trials == 1 for one in run for point in one.leaders)
        contended = list(dict.fromkeys(name for one in run for name in one.contended))
        why = f"no difference above {100 * TEST.time_floor:g} % is certain"
        if alone:
            why = "one trial cannot tell them apart"
        elif contended:
            why = f"others disturbed {listed(contended)}"
        return where, f"Too close to call{of} between {listed(named)}: {why}.{closing}"
    mine = _times([one.leaders[0] for one in run])
    nexts = [(one.following, one.leaders[0]) for one in run if one.following]
    if not nexts:
        among = "without a failed trial" if failed else "with a time"
        return where, f"{leaders[0].contender}, {mine}: the only {leaders[0].verdict} one {among}.{closing}"
    by = between([following.value / first.value for following, first in nexts])
    after = listed(list(dict.fromkeys(following.contender for following, _ in nexts)), "or")
    return (
        where,
        f"{leaders[0].contender} was fastest{of}, {mine}. The next, {after}, took {by} times as long.{closing}",
    )


def _of(lead: Lead, name: str) -> Point:
    return next(point for point in lead.leaders if point.contender == name)


def _times(points: Sequence[Point]) -> str:
    return f"{between([point.value / MS for point in points])} ms"


def _trials(findings: Findings) -> str:
    """A sentence on the number of trials, and on the claims that it allows."""
    phase = findings.headline
    trials = [point.trials for case in findings.cases for point in findings.points(case, phase)]
    processes = "1 trial" if max(trials) == 1 else f"{between(trials)} trials, a process each"
    about = f"Times are those of {phase}, medians of {processes}"
    if max(trials) == 1:
        return f"{about}: no interval can be given, and no difference is certain."
    certain = f"more than {100 * TEST.time_floor:g} % slower, with a q of at most {100 * TEST.alpha:g} %"
    rough = (
        f" Intervals of fewer than {FEW_TRIALS} trials are too narrow: no lead rests on them."
        if min(trials) < FEW_TRIALS
        else ""
    )
    return f"{about}; a lead is claimed only where the test of `snnbench rank` finds the others {certain}.{rough}"
