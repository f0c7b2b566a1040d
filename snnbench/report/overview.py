"""An overview: the results of one recording, computed once for all parts of a report."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from snnbench.analysis.bootstrap import Interval, bootstrap
from snnbench.analysis.results import PHASES, Result, results_by_case
from snnbench.cases.case import Case
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.report import wording
from snnbench.report.numbers import between

SEED = 0
"""The seed of the bootstrap: the same recording gives the same page."""
FEW_TRIALS = 5
"""With fewer trials the bootstrap's interval is too narrow for its nominal confidence."""
PEAK = "peak"
"""Placeholder for the peak of the device or of the host."""
Pair = tuple[Case, str]
"""(case, contender)."""


@dataclass(frozen=True, slots=True)
class Point:
    """One number of one contender in one case: the median over trials, in ns or bytes.

    `low` and `high` are the interval of a two-level bootstrap, which holds 95 % from FEW_TRIALS trials on. They are
    None for memory and for a single trial, which says nothing about another trial. No lead and no word depends on the
    interval. `flags` are those of all its trials, in words.
    """

    case: Case
    contender: str
    verdict: str
    value: float
    trials: int
    low: float | None = None
    high: float | None = None
    flags: str = "none"

    @property
    def ranked(self) -> bool:
        """Whether it is the same work as others, that is, does not deviate."""
        return self.verdict != "deviates"


@dataclass
class Overview:
    """The results of a recording. `failures` are the failed records of each case and contender."""

    recording: Recording
    results: dict[Case, list[Result]]
    failures: dict[Pair, list[Record]]
    intervals: dict[tuple[Case, str, str], Interval] = field(default_factory=dict)

    @property
    def cases(self) -> list[Case]:
        """All cases, in the order of a table."""
        return list(self.results)

    @cached_property
    def settings(self) -> dict[Case, list[Case]]:
        """Cases by setting."""
        return wording.settings(self.results)

    @cached_property
    def contenders(self) -> list[str]:
        """Every planned contender, by name: the order in which colours and shapes are assigned."""
        return sorted({result.contender for found in self.results.values() for result in found})

    @cached_property
    def phases(self) -> list[str]:
        """The phases in which any contender was timed, the headline first."""
        timed = {key for found in self.results.values() for s in found for key in s.summaries}
        return [phase for phase in PHASES if (phase, "time") in timed]

    @property
    def headline(self) -> str:
        """The phase that orders contenders; empty if nothing was timed."""
        return self.phases[0] if self.phases else ""

    def memory(self, case: Case) -> str:
        """The kind of memory to show: `device` if any contender's was measured in this setting, else `host`."""
        shown = [s for other in self.settings[wording.setting(case)] for s in self.results[other]]
        return "device" if any(metric == "device_peak" for s in shown for _, metric in s.summaries) else "host"

    @property
    def baseline(self) -> str:
        """The contender that is the denominator of ratios."""
        return self.recording.baseline

    def timed(self, cases: Iterable[Case]) -> list[Case]:
        """The cases in which any contender has a time of the headline phase."""
        return [case for case in cases if self.points(case, self.headline)]

    def points(self, case: Case, phase: str, metric: str = "time") -> list[Point]:
        """A metric of every contender with it in a case, the exact ones first, by time."""
        points = []
        for result in self.results[case]:
            if summary := result.summaries.get((phase, metric)):
                interval = self.intervals.get((case, result.contender, phase)) if metric == "time" else None
                low, high = (interval.low, interval.high) if interval else (None, None)
                known = result.contender, result.verdict, summary.median, summary.count
                points.append(Point(case, *known, low, high, ", ".join(sorted(result.flags)) or "none"))
        return points

    def failed(self, point: Point) -> bool:
        """Whether another trial of the same contender in the same case failed."""
        return (point.case, point.contender) in self.failures

    def floor_ns(self, case: Case, phase: str) -> float | None:
        """The lowest floor that any contender measured."""
        return next((s.floors_ns.get(phase) for s in self.results[case]), None)

    def name(self, case: Case) -> str:
        """The name of the setting of a case, different from the other settings' names."""
        return wording.setting_name(wording.setting(case), self.settings)

    def label(self, case: Case) -> str:
        """A short name of a case, different from the other cases' names."""
        return f"{self.name(case)}: {wording.sizes(case)}"

    def fullest(self, cases: Iterable[Case], *metrics: tuple[str, str]) -> Case | None:
        """The case in which most contenders have all the metrics, the largest if there are several."""
        scored = []
        for case in cases:
            count = sum(all(metric in s.summaries for metric in metrics) for s in self.results[case])
            scored.append((count, case.updates, case))
        count, _, case = max(scored, key=lambda one: one[:2])
        return case if count else None

    def fullest_of_each(self, *metrics: tuple[str, str]) -> list[Case]:
        """For each setting, the case in which most contenders have all the (phase, metric) pairs."""
        each = []
        for cases in self.settings.values():
            peak = f"{self.memory(cases[0])}_{PEAK}"
            named = [(phase, peak if metric == PEAK else metric) for phase, metric in metrics]
            if (case := self.fullest(cases, *named)) is not None:
                each.append(case)
        return each


def about_intervals(points: Iterable[Point]) -> str:
    """Words on the intervals of these points, to follow "the median"; empty if no point has an interval."""
    counts = {point.trials for point in points if point.low is not None}
    few = {count for count in counts if count < FEW_TRIALS}
    if not few:
        return ", with a 95 % interval where there were several trials" if counts else ""
    narrow = f"too narrow where there were only {between(few)}"
    return f", with an interval ({f'95 %, but {narrow}' if counts - few else narrow} trials)"


def find(recording: Recording) -> Overview:
    """The overview of a recording, with the intervals of all times."""
    results = results_by_case(recording.records)
    failures: dict[Pair, list[Record]] = {}
    for record in recording.records:
        if record.status == "failed":
            failures.setdefault((record.case, record.label), []).append(record)
    positions = [
        (case, result.contender, phase)
        for case, listed in results.items()
        for result in listed
        for phase, trials in result.repetitions.items()
        if len(trials) > 1
    ]
    by_place = {(case, s.contender): s for case, listed in results.items() for s in listed}
    groups = [by_place[case, name].repetitions[phase] for case, name, phase in positions]
    return Overview(recording, results, failures, dict(zip(positions, bootstrap(groups, SEED), strict=True)))
