"""The outline of a report: its sections, in the order in which a reader needs them."""

from collections.abc import Callable

from snnbench import measures
from snnbench.recording.reading import Recording
from snnbench.report.findings import Findings, find
from snnbench.report.page import (
    cells,
    chart_sections,
    crossover,
    epochs,
    failures,
    headline,
    matrix,
    noise,
    provenance,
    scaling,
    sides,
)
from snnbench.report.section import Section

SECTIONS: dict[str, Callable[[Findings], Section]] = {
    "headline": headline.section,
    "matrix": matrix.section,
    "time": chart_sections.times,
    "cells": cells.section,
    "memory": chart_sections.memories,
    "pareto": chart_sections.fronts,
    "split": chart_sections.splits,
    "first-call": chart_sections.first_calls,
    "scaling": scaling.section,
    "ratio": chart_sections.ratios,
    "failures": failures.section,
    "noise": noise.section,
    "provenance": provenance.section,
}
"""The sections in their order: the equivalence matrix comes before the tables and charts of times."""


def outline(recording: Recording) -> list[Section]:
    """Every section of one recording; a section without data says so.

    An A/B test begins with its words. Epochs have a section after that of times, and a measure that a result has after
    the section that it names. A recording of a CPU and a GPU has one on the size from which the GPU pays.
    """
    findings = find(recording)
    metrics = {metric for results in findings.results.values() for each in results for _, metric in each.summaries}
    shown = [each for each in measures.reports().values() if each.section and each.metric in metrics]
    further = {each.after: each.section for each in shown}
    if any(case.is_fed for case in findings.cases):
        further["time"] = epochs.section
    sections: list[Callable[[Findings], Section]] = [sides.section] if recording.sides else []
    for name, section in SECTIONS.items():
        if name == "scaling" and crossover.section(findings).tables:
            sections.append(crossover.section)
        sections.append(section)
        if name in further:
            sections.append(further[name])
    return [section(findings) for section in sections]
