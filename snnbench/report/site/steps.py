"""The steps of a library's times in many recordings of one question on one model of machine, drawn by day."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import Any

import altair as alt

from snnbench.analysis import steps
from snnbench.analysis.case_words import kind, sizes
from snnbench.analysis.comparability import Incomparable, changed, matched
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.movement import Timed
from snnbench.recording.reading import Recording
from snnbench.report.charts import style
from snnbench.report.numbers import counted
from snnbench.report.page.citation import measured
from snnbench.report.section import Chart, Table
from snnbench.report.site.catalogue import Catalogue, cell_name, narrowed, question
from snnbench.report.wording import model
from snnbench.units import MS, number

CHARTS = 8
"""The most charts of steps on a page."""
HEIGHT = 180
"""Of a chart, in px."""


@dataclass(frozen=True, slots=True)
class Series:
    """A time of a contender in comparable recordings, the oldest first, and the steps that were `found`.

    `medians_ns` has the median over trials of each recording.
    """

    timed: Timed
    recordings: Sequence[Recording]
    medians_ns: Sequence[float]
    found: Sequence[steps.Step]

    @property
    def work(self) -> str:
        """The case and the phase."""
        case, _, phase = self.timed
        return f"{kind(case)}, {sizes(case)}, {phase}"

    def changes(self, step: steps.Step) -> list[str]:
        """What else changed at a step: versions of the library and its packages, of the machine and of snnbench."""
        library = self.timed[1].partition("/")[0]
        sides = [
            narrowed(each, [record for record in each.records if record.library == library])
            for each in (self.recordings[step.at - 1], self.recordings[step.at])
        ]
        return changed(*sides)


@dataclass(frozen=True, slots=True)
class Group:
    """Comparable recordings of a question on a machine, the oldest first, and their times.

    `left_out` names the recordings that the newest cannot be compared with, and says why.
    """

    recordings: Sequence[Recording]
    times: Sequence[Mapping[Timed, float]]
    left_out: Sequence[str]


@lru_cache(maxsize=1)
def groups(catalogue: Catalogue) -> list[Group]:
    """The recordings of each question on each model of machine in which steps are looked for."""
    by_recording: dict[str, dict[Timed, float]] = {}
    for entry in catalogue.entries:
        if summary := entry.result.summaries.get((entry.phase, "time")):
            times = by_recording.setdefault(entry.recording.name, {})
            times[entry.case, entry.result.contender, entry.phase] = summary.median
    comparable = []
    for recordings in catalogue.alike:
        if len(recordings) < steps.FEWEST:
            continue
        newest, left_out, kept = recordings[0], [], []
        for recording in sorted(recordings, key=_started):
            try:
                matched(recording, newest)
                kept.append(recording)
            except Incomparable as error:
                left_out.append(f"{recording.name}: {' '.join(str(error).split())}")
        comparable.append(Group(kept, [by_recording.get(each.name, {}) for each in kept], left_out))
    return comparable


def of_library(group: Group, library: str) -> Iterator[Series]:
    """The times of a library that enough recordings of the group have, with their steps."""
    for timed in dict.fromkeys(timed for times in group.times for timed in times):
        places = [place for place, times in enumerate(group.times) if timed in times]
        if timed[1].partition("/")[0] != library or len(places) < steps.FEWEST:
            continue
        recordings = [group.recordings[place] for place in places]
        times = [group.times[place] for place in places]
        found = steps.steps(recordings, times, timed, Thresholds())
        yield Series(timed, recordings, [each[timed] for each in times], found)


def holds(group: Group, library: str) -> bool:
    """Whether any recording of the group has a time of a library."""
    return any(contender.partition("/")[0] == library for times in group.times for _, contender, _ in times)


def _started(recording: Recording) -> str:
    return min((record.started for record in recording.records), default="")


def sentence(group: Group, known: Sequence[Series]) -> str:
    """How many of a group's times have a step; without a time in enough recordings, that they are too few."""
    if not known:
        newest = group.recordings[-1]
        few = f"fewer of {question(newest)} on {model(newest)} have this library"
        return f"Steps are looked for from {steps.FEWEST} comparable recordings of a time on: {few}."
    stepped = sum(bool(each.found) for each in known)
    newest = group.recordings[-1]
    where = f"{counted(len(group.recordings), 'recording')} of {question(newest)} on {model(newest)}"
    return f"In {where}, {stepped} of {counted(len(known), 'time')} changed for good."


ABOUT = (
    f"A step is a day from which a time stays longer or shorter by more than {100 * Thresholds().time_floor:g} %. The "
    "movement of the machine, as its probes and other libraries in the same case show it, is divided out, and a step "
    f"that it may explain is left out. A step shows after {steps.SHORTEST} recordings. Noise that is independent from "
    "day to day shows one in at most 1 % of times."
)


def table(known: Sequence[Series]) -> Table:
    """A row for each step, the newest first: what changed from the recording before to that one."""
    rows, targets = [], []
    for one, step in sorted(
        ((each, step) for each in known for step in each.found),
        key=lambda pair: _started(pair[0].recordings[pair[1].at]),
        reverse=True,
    ):
        rows.append(
            [
                one.timed[1],
                measured(one.recordings[step.at]),
                f"{step.ratio:.2f}",
                "slower" if step.ratio > 1 else "faster",
                "; ".join(one.changes(step)) or "no version",
                one.work,
            ]
        )
        targets.append(f"../cells/{cell_name(*one.timed[:2])}.html")
    columns = ["library", "since", "ratio", "word", "changed that day", "work"]
    return Table(columns, rows, numbers=["ratio"], targets=targets, leaving=["word", "work"])


def charts(known: Sequence[Series]) -> list[Chart]:
    """A chart of each time that has a step; if no time has one, a chart of the first time."""
    drawn = [each for each in known if each.found] or list(known)[:1]
    return [_chart(one, f"steps-{number_}") for number_, one in enumerate(drawn[:CHARTS], start=1)]


def _chart(one: Series, name: str) -> Chart:
    nights: list[dict[str, Any]] = [
        {"time": _started(recording), "ms": ns / MS, "shown": number(ns / MS), "recording": recording.name}
        for recording, ns in zip(one.recordings, one.medians_ns, strict=True)
    ]
    bounds = [0, *(step.at for step in one.found), len(nights)]
    levels = [
        {
            "time": nights[start]["time"],
            "end": nights[end - 1]["time"],
            "ms": median(night["ms"] for night in nights[start:end]),
        }
        for start, end in pairwise(bounds)
    ]
    marks = [
        {
            "time": nights[step.at]["time"],
            "label": _label(step, one.changes(step)),
            "is_late": step.at > len(nights) / 2,
        }
        for step in one.found
    ]
    title = f"{one.timed[1]}: {one.work}"
    return Chart(
        name=name,
        title=title,
        words=f"{title}: {counted(len(nights), 'recording')}, {counted(len(marks), 'step')}.",
        specification=style.specification(_draw(nights, levels, marks), HEIGHT),
        table=Table(["recording", "ms"], [[night["recording"], night["shown"]] for night in nights]),
        note="A point is the median of a recording's trials, a line the median between steps.",
    )


def _label(step: steps.Step, changes: Sequence[str]) -> str:
    """The ratio and one change: of a package if there is one, as their lines begin with one word."""
    first = min(changes, key=lambda line: " " in line.partition(":")[0], default="no version changed")
    return f"{step.ratio:.2f} times: {first.replace(':', '', 1)}"


def _draw(nights: list[dict[str, Any]], levels: list[dict[str, Any]], marks: list[dict[str, Any]]) -> Any:
    x = alt.X("time:T", scale=alt.Scale(type="utc"), axis=alt.Axis(title=None, format="%d %b", tickCount=5))
    scale = style.logarithmic([night["ms"] for night in nights])
    y = alt.Y("ms:Q", scale=scale, axis=alt.Axis(title="ms", format="~g", tickCount=4))
    tips = style.tooltip(recording="recording:N", ms="shown:N")
    layers: list[Any] = [
        alt.Chart(style.data(nights)).mark_point(size=25, filled=True, opacity=0.6).encode(x, y, tooltip=tips),
        alt.Chart(style.data(levels)).mark_rule(strokeWidth=2.5).encode(x, y, alt.X2("end:T")),
    ]
    for is_late in (False, True):
        if shown := [mark for mark in marks if mark["is_late"] == is_late]:
            side: dict[str, Any] = {"align": "right", "dx": -5} if is_late else {"align": "left", "dx": 5}
            base = alt.Chart(style.data(shown))
            layers.append(base.mark_rule(strokeDash=[4, 3]).encode(x))
            layers.append(base.mark_text(baseline="top", y=0, limit=300, **side).encode(x, text="label:N"))
    return style.layered(*layers)
