"""The neuron's share in a report: a column in percent, a table by size, and a section with a bar for each contender."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.report.measure import Shown
from snnbench.report.overview import Overview
from snnbench.report.section import Section, Table
from snnbench.report.text.table import captions

METRIC, NEURONS = "neuron_share", "neurons"
TITLE = "The neuron's share by size"
LEGEND = (
    "%: the neuron's share of a pass at this number of neurons. x floor: the time of the whole pass over the floor, "
    "which has the linear layers alone."
)


def table(results: Mapping[Case, Sequence[Result]], phase: str) -> Table:
    """A row for each contender with a share, the largest share at the largest size first; no row for a single size."""
    by_work: dict[Case, dict[int, Sequence[Result]]] = {}
    for case, listed in results.items():
        shared = [each for each in listed if (phase, METRIC) in each.summaries and each.verdict != "deviates"]
        if NEURONS in case.SIZES and shared:
            by_work.setdefault(case.with_(neurons=0), {})[case.as_dict()[NEURONS]] = shared
    by_work = {work: by_size for work, by_size in by_work.items() if len(by_size) > 1}
    sizes = sorted({size for by_size in by_work.values() for size in by_size})
    _, names = captions(by_work)
    apart = len(names) > 1
    rows = []
    for work, by_size in by_work.items():
        contenders: dict[str, dict[int, Result]] = {
            each.contender: {} for listed in by_size.values() for each in listed
        }
        for size, listed in by_size.items():
            for each in listed:
                contenders[each.contender][size] = each
        order = sorted(contenders.items(), key=lambda item: [-_share(item[1].get(size), phase) for size in sizes[::-1]])
        for contender, results_ in order:
            cells = [cell for size in sizes for cell in _cells(results_.get(size), phase)]
            rows.append([*([names[work]] if apart else []), contender, *cells])
    columns = [name for size in sizes for name in (f"N={size} %", f"N={size} x floor")]
    leaving = [f"N={size} x floor" for size in sizes]
    return Table([*(["work"] if apart else []), "library", *columns], rows, texts=1 + apart, leaving=leaving)


def _share(result: Result | None, phase: str) -> float:
    """The share, or one below all others."""
    return result.summaries[phase, METRIC].median if result else float("-inf")


def _cells(result: Result | None, phase: str) -> tuple[str, str]:
    if result is None:
        return "-", "-"
    time_ns, floor_ns = result.summaries[phase, "time"].median, result.floors_ns.get(phase)
    return f"{100 * _share(result, phase):.0f}", f"{time_ns / floor_ns:.2f}" if floor_ns else "-"


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


def sections(overview: Overview) -> Iterable[Section]:
    """The shares, if there are several sizes."""
    if (shares := table(overview.results, overview.headline)).rows:
        yield Section("shares", TITLE, tables=[shares], closing=[LEGEND])


def section(overview: Overview) -> Section:
    """How much of a pass is the neuron."""
    from snnbench.measures.neuron_share import chart

    title, phase = "The neuron's share", overview.headline
    shown = [
        case
        for cases in overview.settings.values()
        for case in cases
        if any(point.ranked for point in overview.points(case, phase, METRIC))
    ]
    if not shown:
        return Section("neuron-share", title, ["Left out: no pass was timed without its neurons."])
    sentences = [
        f"One pass of {phase}, and the same pass with the identity in place of each neuron: the linear layers alone. "
        "The share is the rest. Both ran in one process, in turn. A share below 0 means that the whole pass is faster "
        "than the framework's own linear layers. Contenders that deviate are left out."
    ]
    makers = [partial(chart.bars, overview, case, phase) for case in shown]
    section_ = Section.of_charts("neuron-share", title, sentences, makers, "a pass, and the same without neurons")
    if (shares := table(overview.results, phase)).rows:
        section_ = replace(section_, tables=[replace(shares, caption=TITLE)])
    return section_


SHOWN = Shown(METRIC, heading, cell, section, after="split", sections=sections)
