"""The section of epochs: their parts, by strategy, beside the loader alone and the network alone."""

from functools import partial

from snnbench.analysis.epochs import epochs
from snnbench.report.charts import epoch_parts
from snnbench.report.findings import Findings
from snnbench.report.section import Section
from snnbench.report.text import epoch_table


def section(findings: Findings) -> Section:
    """A table and a chart for each group of cases that differ in strategy and workers only."""
    title = epoch_table.TITLE
    groups = list(epochs(findings.results).values())
    if not groups:
        return Section("epochs", title, ["Left out: no epoch was timed with its loader alone and its network alone."])
    titled = epoch_table.tables(findings.results)
    makers = [
        partial(epoch_parts.bars, group, about.removeprefix(f"{title}: "))
        for group, (about, _) in zip(groups, titled, strict=True)
    ]
    return Section(
        "epochs",
        title,
        [
            "Parts of an epoch by the loop's own marks. Waiting is the time in which the loop waits for a batch; the "
            "loader's parts are there if the loop loads by itself. The tick is max(loader, compute)."
        ],
        remarks=epoch_table.sentences(findings.results, findings.recording.records),
        tables=[table for _, table in titled],
        charts=[make(f"epochs-{number}") for number, make in enumerate(makers, start=1)],
    )
