"""The history of a library: how its times changed in recordings of the same question on the same model of machine.

Of few recordings each is compared with the one before it; many of them show steps (steps.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import altair as alt

from snnbench.analysis.comparability import Incomparable
from snnbench.analysis.compare import compare
from snnbench.analysis.comparisons import Comparison
from snnbench.analysis.decision import Thresholds
from snnbench.analysis.steps import FEWEST
from snnbench.recording.reading import Recording
from snnbench.report.charts import style
from snnbench.report.numbers import counted
from snnbench.report.page.citation import measured
from snnbench.report.section import Chart, Section, Table
from snnbench.report.site import steps
from snnbench.report.site.catalogue import Catalogue, cell_name, question

TITLE = "What changed"
CHANGES = ("slower", "faster")


@dataclass(frozen=True, slots=True)
class Pair:
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


def pairs(catalogue: Catalogue) -> list[Pair]:
    """Every pair of neighbours, the newest first, in groups of recordings that are too few for steps."""
    few = [group for group in catalogue.alike if len(group) < FEWEST]
    return [_pair(older, newer) for group in few for newer, older in pairwise(group)]


def _pair(older: Recording, newer: Recording) -> Pair:
    try:
        comparisons = compare(older, newer, Thresholds()).each
    except Incomparable as error:
        return Pair(older, newer, (), " ".join(str(error).split()))
    timed = [each for each in comparisons if each.metric == "time" and each.ratio is not None]
    return Pair(older, newer, timed)


def section(catalogue: Catalogue, every: Sequence[Pair], library: str) -> Section:
    """What changed: steps in many recordings, and else the comparison of each recording with the one before it."""
    groups = [(group, list(steps.of_library(group, library))) for group in steps.groups(catalogue)]
    groups = [(group, known) for group, known in groups if known or steps.holds(group, library)]
    series = [each for _, known in groups for each in known]
    of_pairs = _of_pairs(every, library)
    if not groups:
        return of_pairs
    table = steps.table(series)
    if not of_pairs.tables:
        of_pairs = replace(of_pairs, sentences=[])
    return replace(
        of_pairs,
        sentences=[*(steps.sentence(group, known) for group, known in groups), steps.ABOUT, *of_pairs.sentences],
        tables=[*([table] if table.rows else []), *of_pairs.tables],
        charts=[*steps.charts(series), *of_pairs.charts],
        remarks=[*of_pairs.remarks, *(reason for group, _ in groups for reason in group.left_out)],
    )


def _of_pairs(every: Sequence[Pair], library: str) -> Section:
    """A row for each time of the library in two recordings, changes first, and a chart of the ratios by day."""
    known = [
        (pair, comparison)
        for pair in every
        for comparison in pair.comparisons
        if comparison.contender.partition("/")[0] == library
    ]
    incomparable = [
        f"{pair.older.name} and {pair.newer.name}: {pair.reason}"
        for pair in every
        if pair.reason and any(record.library == library for record in pair.newer.records)
    ]
    if not known:
        nothing = "No cell of this library was measured twice on the same machine in recordings that can be compared."
        return Section("history", TITLE, [nothing], remarks=incomparable)
    known.sort(key=lambda each: each[1].word not in CHANGES)
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
            pair.question,
            f"{measured(pair.older)} to {measured(pair.newer)}",
        ]
        for pair, comparison in known
    ]
    columns = ["library", "work", "phase", "ratio", "word", "config", "days"]
    anchors = [
        f"{cell_name(comparison.case, comparison.contender)}-{comparison.phase}-{pair.newer.name}"
        for pair, comparison in known
    ]
    targets = [f"../cells/{cell_name(comparison.case, comparison.contender)}.html" for _, comparison in known]
    leaving = ["config", "phase", "days"]
    table = Table(columns, rows, numbers=["ratio"], anchors=anchors, targets=targets, leaving=leaving)
    return Section("history", TITLE, sentences, tables=[table], charts=[_chart(known)], remarks=incomparable)


def _chart(known: Sequence[tuple[Pair, Comparison]]) -> Chart:
    """Ratios by the recording that they belong to; a change has a thick outline."""
    rows: list[dict[str, Any]] = [
        {
            "recording": pair.newer.name,
            "library": comparison.contender,
            "ratio": comparison.ratio,
            "shown": f"{comparison.ratio:.2f}",
            "word": comparison.word if comparison.word in CHANGES else "no change that is certain",
            "work": f"{comparison.case.kind}, {comparison.case.sizes()}, {comparison.phase}",
        }
        for pair, comparison in sorted(known, key=lambda each: (measured(each[0].newer), each[0].newer.name))
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
    return style.layered(
        alt.Chart(style.data([{"ratio": 1.0}])).mark_rule(strokeDash=[1, 3]).encode(x),
        alt.Chart(style.data(rows)).mark_point(size=60).encode(x, y, colour, shape, strokeWidth=width, tooltip=tips),
    )
