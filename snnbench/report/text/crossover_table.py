"""The table of crossovers: the size from which a GPU pays, by library."""

from collections.abc import Iterator, Mapping, Sequence

from snnbench.analysis.crossover import Crossover, crossovers
from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.report.overview import Overview
from snnbench.report.section import Section, Table
from snnbench.report.text.table import captions

TITLE = "From which size a GPU pays"
RATIOS = ("ratio, smallest", "ratio, largest")
LEGEND = (
    "ratio: time on the GPU over time on the CPU, of each library's fastest contender there, at the smallest and the "
    "largest size. A size between two measured ones is read off a straight line on a logarithmic scale."
)


def sections(overview: Overview) -> Iterator[Section]:
    """The table, if a library has times on both kinds of device."""
    if (crossings := table(overview.results, overview.headline)).rows:
        yield Section("crossover", TITLE, tables=[crossings], closing=[LEGEND], brief="by library")


def table(results: Mapping[Case, Sequence[Result]], phase: str) -> Table:
    """A row for each library with times on both kinds of device, the earliest crossing first."""
    listed = crossovers(results, phase)
    _, names = captions({one.case: None for one in listed})
    apart = len(names) > 1
    rows = [
        [
            *([names[one.case]] if apart else []),
            one.library,
            _from(one),
            *(f"{ratio:.2f} at {size:,}" for size, ratio in (one.ratios[0], one.ratios[-1])),
            one.cpu,
            one.cuda,
        ]
        for one in sorted(listed, key=lambda one: one.pays_from or float("inf"))
    ]
    columns = ["library", "GPU pays from", *RATIOS, "on the CPU", "on the GPU"]
    return Table([*(["work"] if apart else []), *columns], rows, numbers=RATIOS, leaving=("on the CPU", "on the GPU"))


def _from(crossover: Crossover) -> str:
    letter = crossover.case.SIZES[crossover.axis][0]
    if crossover.pays_from is None:
        return f"no size up to {letter}={crossover.ratios[-1][0]:,}"
    if not crossover.is_bracketed:
        return f"every size from {letter}={crossover.ratios[0][0]:,}"
    return f"about {letter}={crossover.pays_from:,.0f}"
