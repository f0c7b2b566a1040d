"""The outline of a report: its sections, in the order in which a reader needs them."""

from snnbench.recording.reading import Recording
from snnbench.report.charts import energy, neuron_share
from snnbench.report.findings import find
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

SECTIONS = (
    headline.section,
    matrix.section,
    chart_sections.times,
    cells.section,
    chart_sections.memories,
    chart_sections.fronts,
    chart_sections.splits,
    chart_sections.first_calls,
    scaling.section,
    chart_sections.ratios,
    failures.section,
    noise.section,
    provenance.section,
)
"""The sections in their order: the equivalence matrix comes before the tables and charts of times."""


def outline(recording: Recording) -> list[Section]:
    """Every section of one recording; a section without data says so.

    An A/B test begins with its words. Epochs have a section after that of times, energy after memory, and the
    neuron's share after the forward and backward passes.
    A recording of a CPU and a GPU has one on the size from which the GPU pays.
    """
    findings = find(recording)
    sections = [*((sides.section,) if recording.sides else ()), *SECTIONS]
    if any(case.is_fed for case in findings.cases):
        sections.insert(sections.index(chart_sections.times) + 1, epochs.section)
    results = [result for listed in findings.results.values() for result in listed]
    if any(metric == energy.METRIC for result in results for _, metric in result.summaries):
        sections.insert(sections.index(chart_sections.memories) + 1, chart_sections.energies)
    if any(metric == neuron_share.METRIC for result in results for _, metric in result.summaries):
        sections.insert(sections.index(chart_sections.splits) + 1, chart_sections.neuron_shares)
    if crossover.section(findings).tables:
        sections.insert(sections.index(scaling.section), crossover.section)
    return [section(findings) for section in sections]
