"""The section that compares the two sides of an A/B test: a row for each time and peak, changes first."""

from snnbench.analysis.abtest import compare_sides
from snnbench.analysis.comparability import Incomparable
from snnbench.report.findings import Findings
from snnbench.report.section import Section
from snnbench.report.text.change_table import changes_of, summary


def section(findings: Findings) -> Section:
    """The words of `snnbench compare RECORDING`, decided by the rule of the run."""
    try:
        comparison = compare_sides(findings.recording)
    except Incomparable as error:
        return Section("slower-or-not", "Slower or not", [str(error)])
    common, changes = changes_of(comparison)
    sentences = [
        f"{comparison.new} (new) over {comparison.base} (base), which took turns: above 1 is slower, or more memory. "
        f"{summary(comparison)}.",
        f"All comparisons: {common}." if common else "",
    ]
    return Section(
        "slower-or-not",
        "Slower or not",
        [sentence for sentence in sentences if sentence],
        remarks=[f"changed: {line}" for line in comparison.changed],
        tables=[changes],
    )
