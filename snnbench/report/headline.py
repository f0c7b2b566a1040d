"""The headline: what became of the cells, and who was fastest where, in words that claim no more than was seen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from snnbench.case import Case
from snnbench.record import Record
from snnbench.report import work
from snnbench.report.findings import Findings, Point
from snnbench.report.numbers import MS, between, counted, listed
from snnbench.report.section import Section

WORDS = {
    "oom-device": "out of device memory",
    "oom-host": "out of host memory",
    "timeout": "timed out",
    "crash": "crashed",
    "environment": "without an environment",
    "import": "not importable",
    "below-floor": "below the floor",
}
"""Kinds of outcome as a sentence wants them; the others are words already."""
ANSWERS = 40
NAMED = 4
"""Most contenders that a tie names."""
FEW = 5
"""Trials below which an interval is rough."""


@dataclass(frozen=True, slots=True)
class Lead:
    """Of one case: the contenders that nothing tells from the fastest, itself first, and the next one, if any."""

    case: Case
    leaders: tuple[Point, ...]
    following: Point | None

    @property
    def names(self) -> tuple[str, ...]:
        """The leaders' names, the fastest first."""
        return tuple(point.contender for point in self.leaders)


def section(findings: Findings) -> Section:
    """Coverage, and for each setting the fastest at each size."""
    answers = [answer for cases in findings.settings.values() for answer in _answers(findings, cases)]
    sentences = [f"{words(findings.recording.records)}."]
    if findings.recording.torn:
        torn = counted(findings.recording.torn, "line")
        sentences.append(f"{torn} of the recording could not be read: a kill or a full disk tore them.")
    if not findings.headline:
        sentences.append("Nothing was timed: this recording says who does the same work, not how fast.")
        return Section("answer", "In short", sentences)
    sentences.append(_trials(findings))
    left = len(answers) - ANSWERS
    closing = [f"{left} more are in the tables below."] if left > 0 else []
    return Section("answer", "In short", sentences, answers=answers[:ANSWERS], closing=closing)


def words(records: Iterable[Record]) -> str:
    """`218 of 240 cells measured: 9 out of device memory, 3 incorrect, 10 unsupported`."""
    records = list(records)
    others = Counter(str(record.outcome["kind"]) for record in records if record.status != "measured")
    measured = sum(record.status == "measured" for record in records)
    rest = ", ".join(f"{count} {WORDS.get(kind, kind)}" for kind, count in others.most_common())
    return f"{measured} of {counted(len(records), 'cell')} measured" + (f": {rest}" if rest else "")


def lead(findings: Findings, case: Case) -> Lead | None:
    """Who is fastest in a case, of the exact; where nobody is, of the equivalent. None without a time."""
    points = findings.points(case, findings.headline)
    for verdict in ("exact", "equivalent"):
        if ranked := sorted((p for p in points if p.verdict == verdict), key=lambda point: point.value):
            first, *others = ranked
            level = [other for other in others if first.overlaps(other)]
            apart = [other for other in others if not first.overlaps(other)]
            return Lead(case, (first, *level), apart[0] if apart else None)
    return None


def _answers(findings: Findings, cases: Sequence[Case]) -> list[tuple[str, str]]:
    """An answer for each run of sizes with the same leaders."""
    found = []
    for axis, family in _groups(cases):
        runs: list[list[Lead]] = []
        for one in (lead(findings, case) for case in family):
            if one is None:
                continue
            if runs and set(runs[-1][0].names) == set(one.names):
                runs[-1].append(one)
            else:
                runs.append([one])
        found += [_answer(findings, run, axis) for run in runs]
    return found


def _groups(cases: Sequence[Case]) -> list[tuple[str, list[Case]]]:
    """Every case once, with an axis along which it may stand beside others."""
    found, left = [], list(cases)
    for axis in work.SIZES:
        for family in work.families(left, axis):
            if len(family) > 1:
                found.append((axis, family))
                left = [case for case in left if case not in family]
    return [*found, *(("neurons", [case]) for case in left)]


def _answer(findings: Findings, run: Sequence[Lead], axis: str) -> tuple[str, str]:
    """Where, and who was fastest there."""
    sizes = listed([str(work.size(one.case, axis)) for one in run])
    rest = work.sizes(run[0].case, axis)
    where = f"{findings.name(run[0].case)}, {work.SIZES[axis]}={sizes}" + (f", {rest}" if rest else "")
    leaders = run[0].leaders
    of = "" if leaders[0].verdict == "exact" else f" of the {leaders[0].verdict}"
    if len(leaders) > 1:
        named = [f"{p.contender} ({_times([_of(one, p.contender) for one in run])})" for p in leaders[:NAMED]]
        named += [counted(len(leaders) - NAMED, "other")] if len(leaders) > NAMED else []
        alone = any(point.low is None for point in leaders)
        why = "one trial cannot tell them apart" if alone else "their intervals overlap"
        return where, f"Too close to call{of} between {listed(named)}: {why}."
    mine = _times([one.leaders[0] for one in run])
    nexts = [(one.following, one.leaders[0]) for one in run if one.following]
    if not nexts:
        return where, f"{leaders[0].contender}, {mine}: the only {leaders[0].verdict} one with a time."
    by = between([following.value / first.value for following, first in nexts])
    after = listed(list(dict.fromkeys(following.contender for following, _ in nexts)), "or")
    return where, f"{leaders[0].contender} was fastest{of}, {mine}. The next, {after}, took {by} times as long."


def _of(one: Lead, name: str) -> Point:
    return next(point for point in one.leaders if point.contender == name)


def _times(points: Sequence[Point]) -> str:
    return f"{between([point.value / MS for point in points])} ms"


def _trials(findings: Findings) -> str:
    """How many trials stand behind a number, and what that allows to say."""
    phase = findings.headline
    trials = [point.trials for case in findings.cases for point in findings.points(case, phase)]
    processes = "1 trial" if max(trials) == 1 else f"{between(trials)} trials, a process each"
    about = f"Times are those of {phase}, medians of {processes}"
    if max(trials) == 1:
        return f"{about}: no interval can be given, and no difference is certain."
    rough = " With so few, intervals are rough: read small leads as ties." if min(trials) < FEW else ""
    return f"{about}; a lead is claimed only where 95 % intervals do not overlap.{rough}"
