"""The lead of each case: the fastest contender and all that no test calls slower; claimed only if the test says so."""

from dataclasses import dataclass

from snnbench.analysis.cells import Side
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.pairs import pairs, side_of, slower
from snnbench.cases.case import Case
from snnbench.report.findings import Findings, Point

TEST = Thresholds()
"""The thresholds of a lead: the defaults of `rank` and `compare`."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The leaders of one case (the fastest and all contenders not slower by the test), and the ones behind, by time.

    `failed` contenders have a time, too, but failed in another trial, so they are not ranked. `contended` are leaders
    with a trial that other processes disturbed, so nothing is claimed of them.
    """

    case: Case
    leaders: tuple[Point, ...]
    behind: tuple[Point, ...]
    failed: tuple[str, ...]
    contended: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The leaders' names, the fastest first."""
        return tuple(point.contender for point in self.leaders)


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
        result[case] = Lead(case, (first, *level), tuple(behind), tuple(failed), contended)
    return result


def _ranked(findings: Findings, case: Case) -> list[Point]:
    """The contenders without a failed trial that have the best verdict of them, by their medians."""
    points = [point for point in findings.points(case, findings.headline) if not findings.failed(point)]
    by_verdict = ([point for point in points if point.verdict == verdict] for verdict in ("exact", "equivalent"))
    return sorted(next(filter(None, by_verdict), []), key=lambda point: point.value)


def _side(findings: Findings, point: Point) -> Side:
    result = next(one for one in findings.results[point.case] if one.contender == point.contender)
    return side_of(result, findings.headline)
