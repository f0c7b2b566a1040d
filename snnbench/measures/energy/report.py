"""Energy in a report: a column of the joules of a pass, and a section with a bar for each contender."""

from functools import partial

from snnbench.analysis.results import Result
from snnbench.report.measure import Shown
from snnbench.report.overview import Overview
from snnbench.report.section import Section
from snnbench.units import number

METRIC = "energy"


def heading(phase: str) -> str:
    """The column's name."""
    return f"{phase} J"


def cell(result: Result, phase: str) -> str:
    """An energy; noise of the idle power may put it below 0."""
    summary = result.summaries.get((phase, METRIC))
    if summary is None:
        return "-"
    return number(summary.median) if summary.median > 0 else "noise"


def section(overview: Overview) -> Section:
    """Energy beyond idle power."""
    from snnbench.measures.energy import chart

    title, phase = "Energy", overview.headline
    shown = [
        case
        for case in overview.fullest_of_each((phase, METRIC))
        if any(point.ranked for point in overview.points(case, phase, METRIC))
    ]
    if not shown:
        return Section("energy", title, ["Left out: no machine of this recording counts energy."])
    sentences = [
        f"One pass of {phase}: the joules that the counter adds up while passes run, less the idle power before them. "
        "Each is the median over trials. Contenders that deviate are left out."
    ]
    makers = [partial(chart.bars, overview, case, phase) for case in shown]
    return Section.of_charts("energy", title, sentences, makers, "joules of one pass")


SHOWN = Shown(METRIC, heading, cell, section, after="memory")
