"""The neuron's share in a report: a column in percent, a table by size, and a section with a bar for each contender."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.measures.neuron_share import table
from snnbench.report.findings import Findings
from snnbench.report.measure import Shown, Titled
from snnbench.report.section import Section

METRIC = "neuron_share"


def heading(phase: str) -> str:
    """The column's name."""
    return "neuron %"


def cell(result: Result, phase: str) -> str:
    """The neuron's share of a phase in percent: the quartiles over trials, or half of the spread within one trial."""
    summary, within = (result.summaries.get((phase, metric)) for metric in (METRIC, f"{METRIC}_spread"))
    if summary is None or within is None or result.verdict == "deviates":
        return "-"
    if summary.count > 1:
        return f"{summary.median:.0%} ({summary.low:.0%}-{summary.high:.0%})".replace("%", "")
    return f"{summary.median:.0%} ±{within.median / 2:.1%}".replace("%", "")


def tables(results: Mapping[Case, Sequence[Result]], phase: str) -> Iterable[Titled]:
    """The shares at several sizes."""
    return [(table.TITLE, table.table(results, phase), table.LEGEND)]


def section(findings: Findings) -> Section:
    """How much of a pass is the neuron."""
    from snnbench.measures.neuron_share import chart

    title, phase = "The neuron's share", findings.headline
    shown = [
        case
        for cases in findings.settings.values()
        for case in cases
        if any(point.ranked for point in findings.points(case, phase, METRIC))
    ]
    if not shown:
        return Section("neuron-share", title, ["Left out: no pass was timed without its neurons."])
    sentences = [
        f"One pass of {phase}, and the same pass with the identity in place of each neuron: the linear layers alone. "
        "The share is the rest. Both ran in one process, in turn. A share below 0 means that the whole pass is faster "
        "than the framework's own linear layers. Contenders that deviate are left out."
    ]
    makers = [partial(chart.bars, findings, case, phase) for case in shown]
    section_ = Section.of_charts("neuron-share", title, sentences, makers)
    if (shares := table.table(findings.results, phase)).rows:
        section_ = replace(section_, tables=[replace(shares, caption=table.TITLE)])
    return section_


SHOWN = Shown(METRIC, heading, cell, section, after="split", tables=tables)
