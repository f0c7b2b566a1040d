"""The section on the size from which a GPU pays, for recordings with both kinds of device."""

from snnbench.report.findings import Findings
from snnbench.report.section import Section
from snnbench.report.text import crossover_table


def section(findings: Findings) -> Section:
    """The table of crossovers; without a table if no library has times on both."""
    crossings = crossover_table.table(findings.results, findings.headline)
    shown = [crossings] if crossings.rows else []
    return Section("crossover", crossover_table.TITLE, [crossover_table.LEGEND], tables=shown)
