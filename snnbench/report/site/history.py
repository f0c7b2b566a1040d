"""The history of a library: how its times changed from one recording to the next of the same question and machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt

from snnbench.analysis.comparability import Incomparable
from snnbench.analysis.compare import compare
from snnbench.analysis.comparisons import Comparison
from snnbench.analysis.decision import Thresholds
from snnbench.recording.reading import Recording
from snnbench.report.charts import style
from snnbench.report.numbers import counted
from snnbench.report.page.citation import measured
from snnbench.report.section import Chart, Section, Table
from snnbench.report.site.catalogue import Catalogue, cell_name, question
from snnbench.report.wording import model

TITLE = "What changed"
CHANGES = ("slower", "faster")


@dataclass(frozen=True, slots=True)
class Step:
    """Two neighbouring recordings of a question on a machine, and their compared times.

    `reason` says why the two cannot be compared; then there are no comparisons.
    """

    older: Recording
    newer: Recording
    comparisons: Sequence[Comparison]
    reason: str = ""

    @property
    def question(self) -> str:
        """The config that both answer."""
        return question(self.newer)


def steps(catalogue: Catalogue) -> list[Step]:
    """Every pair of neighbouring recordings of one question on one model of machine, the newest first."""
    groups: dict[tuple[str, str], list[Recording]] = {}
    for recording in catalogue.recordings:
        if not recording.sides:
            groups.setdefault((question(recording), model(recording)), []).append(recording)
    return [_step(older, newer) for group in groups.values() for newer, older in pairwise(group)]


def _step(older: Recording, newer: Recording) -> Step:
    try:
        comparisons = compare(older, newer, Thresholds()).each
    except Incomparable as error:
        return Step(older, newer, (), " ".join(str(error).split()))
    return Step(
        older,
        newer,
        [comparison for comparison in comparisons if comparison.metric == "time" and comparison.ratio is not None],
    )


def section(every: Sequence[Step], library: str) -> Section:
    """A row for each time of the library in two recordings, changes first, and a chart of the ratios by day."""
    known = [
        (step, comparison)
        for step in every
        for comparison in step.comparisons
        if comparison.contender.partition("/")[0] == library
    ]
    incomparable = [
        f"{step.older.name} and {step.newer.name}: {step.reason}"
        for step in every
        if step.reason and any(record.library == library for record in step.newer.records)
    ]
    if not known:
        nothing = "No cell of this library was measured twice on the same machine in recordings that can be compared."
        return Section("history", TITLE, [nothing], remarks=incomparable)
    known.sort(key=lambda pair: pair[1].word not in CHANGES)
    changed = sum(comparison.word in CHANGES for _, comparison in known)
    sentences = [
        f"{counted(changed, 'time')} of {len(known)} changed, by the test of snnbench compare. A ratio is a time over "
        "that in the recording before, so above 1 is slower. The word allows for the movement of the machine."
    ]
    rows = [
        [
            comparison.contender,
            f"{comparison.case.kind}, {comparison.case.sizes()}",
            comparison.phase,
            f"{comparison.ratio:.2f}",
            comparison.word,
            step.question,
            f"{measured(step.older)} to {measured(step.newer)}",
        ]
        for step, comparison in known
    ]
    columns = ["library", "work", "phase", "ratio", "word", "config", "days"]
    anchors = [
        f"{cell_name(comparison.case, comparison.contender)}-{comparison.phase}-{step.newer.name}"
        for step, comparison in known
    ]
    targets = [f"../cells/{cell_name(comparison.case, comparison.contender)}.html" for _, comparison in known]
    table = Table(columns, rows, numbers=["ratio"], anchors=anchors, targets=targets)
    return Section("history", TITLE, sentences, tables=[table], charts=[_chart(known)], remarks=incomparable)


def _chart(known: Sequence[tuple[Step, Comparison]]) -> Chart:
    """Ratios by the recording that they belong to; a change has a thick outline."""
    rows: list[dict[str, Any]] = [
        {
            "recording": step.newer.name,
            "library": comparison.contender,
            "ratio": comparison.ratio,
            "shown": f"{comparison.ratio:.2f}",
            "word": comparison.word if comparison.word in CHANGES else "no change that is certain",
            "work": f"{comparison.case.kind}, {comparison.case.sizes()}, {comparison.phase}",
        }
        for step, comparison in sorted(known, key=lambda pair: (measured(pair[0].newer), pair[0].newer.name))
    ]
    changed = sum(comparison.word in CHANGES for _, comparison in known)
    names = list(dict.fromkeys(row["recording"] for row in rows))
    return Chart(
        name="history-ratios",
        title="Times over those of the recording before",
        words=f"Ratios of {counted(len(rows), 'time')} in {counted(len(names), 'recording')}; {changed} changed.",
        note="A thick outline is a change that the test is certain of.",
        specification=style.specification(_draw(rows, names), style.ROW * (len(names) + 3)),
        table=Table(
            ["library", "work", "recording", "word", "ratio"],
            [[str(row[name]) for name in ("library", "work", "recording", "word", "shown")] for row in rows],
            texts=4,
        ),
    )


def _draw(rows: list[dict[str, Any]], names: list[str]) -> Any:
    shown = sorted({row["library"] for row in rows})
    axis = alt.Axis(title=None, labelPadding=6, ticks=False, domain=False)
    y = alt.Y("recording:N", sort=None, scale=alt.Scale(domain=names), axis=axis)
    scale = style.logarithmic([1.0, *(row["ratio"] for row in rows)])
    x = alt.X("ratio:Q", scale=scale, axis=alt.Axis(title="ratio", format="~g", tickCount=5))
    is_change = alt.FieldOneOfPredicate(field="word", oneOf=list(CHANGES))
    width = alt.condition(is_change, alt.value(3.5), alt.value(1))
    tips = style.tooltip(library="library:N", work="work:N", ratio="shown:N", word="word:N")
    colour, shape = (make(shown, shown) for make in (style.color, style.shape))
    return alt.layer(
        alt.Chart(style.data([{"ratio": 1.0}])).mark_rule(strokeDash=[1, 3]).encode(x),
        alt.Chart(style.data(rows)).mark_point(size=60).encode(x, y, colour, shape, strokeWidth=width, tooltip=tips),
    )
