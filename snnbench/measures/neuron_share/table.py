"""The table of the neuron's share at several sizes: a row for each contender, two columns for each size."""

from collections.abc import Mapping, Sequence

from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.report.section import Table
from snnbench.report.text.table import captions

SHARE, NEURONS = "neuron_share", "neurons"
TITLE = "The neuron's share by size"
LEGEND = (
    "%: the neuron's share of a pass at this number of neurons. x floor: the time of the whole pass over the floor, "
    "which has the linear layers alone."
)


def table(results: Mapping[Case, Sequence[Result]], phase: str) -> Table:
    """A row for each contender with a share, the largest share at the largest size first; no row for a single size."""
    by_work: dict[Case, dict[int, Sequence[Result]]] = {}
    for case, listed in results.items():
        if NEURONS in case.SIZES and (shared := [each for each in listed if _has_share(each, phase)]):
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


def _has_share(result: Result, phase: str) -> bool:
    return (phase, SHARE) in result.summaries and result.verdict != "deviates"


def _share(result: Result | None, phase: str) -> float:
    """The share, or one below all others."""
    return result.summaries[phase, SHARE].median if result else float("-inf")


def _cells(result: Result | None, phase: str) -> tuple[str, str]:
    if result is None:
        return "-", "-"
    time_ns, floor_ns = result.summaries[phase, "time"].median, result.floors_ns.get(phase)
    return f"{100 * _share(result, phase):.0f}", f"{time_ns / floor_ns:.2f}" if floor_ns else "-"
