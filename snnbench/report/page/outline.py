"""The outline of a report: its sections, in the order in which a reader needs them."""

from collections.abc import Callable

from snnbench import measures
from snnbench.recording.reading import Recording
from snnbench.report.overview import Overview, find
from snnbench.report.page import matrix, noise, provenance, scaling, sections
from snnbench.report.section import Section
from snnbench.report.text import crossover_table, exchange_table

SECTIONS: dict[str, Callable[[Overview], Section]] = {
    "headline": sections.headline,
    "time": sections.times,
    "cells": sections.cells,
    "matrix": matrix.section,
    "memory": sections.memories,
    "pareto": sections.fronts,
    "split": sections.splits,
    "first-call": sections.first_calls,
    "scaling": scaling.section,
    "ratio": sections.ratios,
    "failures": sections.failures,
    "noise": noise.section,
    "provenance": provenance.section,
}
"""The sections in their order: the answer, its chart and its numbers, then who does the same work."""
OPEN = frozenset({"slower-or-not", "answer", "time", "epochs", "cells", "matrix", "exchange"})
"""The names of the sections that a page shows unfolded."""


def outline(recording: Recording) -> list[Section]:
    """Every section of one recording; a section without data says so.

    An A/B test begins with its words. Epochs have a section after that of times, and a measure that a result has after
    the section that it names. A recording of a CPU and a GPU has one on the size from which the GPU pays, and one of
    NIR graphs one on importers and exporters.
    """
    overview = find(recording)
    metrics = {metric for results in overview.results.values() for each in results for _, metric in each.summaries}
    with_section = [each for each in measures.reports().values() if each.section and each.metric in metrics]
    further = {each.after: each.section for each in with_section}
    if any(case.is_fed for case in overview.cases):
        further["time"] = sections.of_epochs
    shown = [sections.sides(overview)] if recording.sides else []
    for name, section in SECTIONS.items():
        if name == "scaling":
            shown += crossover_table.sections(overview)
        shown.append(section(overview))
        if name == "matrix":
            shown += exchange_table.sections(overview)
        if name in further:
            shown.append(further[name](overview))
    return shown
