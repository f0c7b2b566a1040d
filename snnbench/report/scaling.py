"""How times grow with each size that was swept."""

from collections.abc import Sequence

from snnbench.case import Case
from snnbench.report import work
from snnbench.report.charts import lines
from snnbench.report.exponent import exponent
from snnbench.report.findings import Findings
from snnbench.report.section import Chart, Section, Table

VALUES = 3
"""Least values of an axis for a fit with an error."""
PANELS = 12
STEEP = 1.5
"""An exponent whose whole interval is above this is nearer to a square than to a line."""


def section(findings: Findings) -> Section:
    """Exponents of every axis with three values, and charts against those other than neurons, which have their own."""
    charts: list[Chart] = []
    tables: list[Table] = []
    remarks: list[str] = []
    for axis in work.SIZES:
        for cases in swept(findings, axis):
            if len(tables) == PANELS:
                break
            table, steep = _table(findings, cases, axis)
            if not table.rows:
                continue
            tables.append(table)
            remarks += steep
            if axis != "neurons":
                name = f"scaling-{axis.replace('_', '-')}-{len(charts) + 1}"
                charts.append(lines.against(findings, cases, axis, findings.headline, name))
    title = "Growth with each size"
    if not tables:
        return Section("scaling", title, ["Left out: no size was swept over three values or more."])
    return Section(
        "scaling",
        title,
        [
            "Exponents of a power law, fitted on logarithms: 1 grows in proportion, 2 with the square. In brackets a "
            "95 % interval, which is wide where a time does not follow a power law; after the semicolon the exponent "
            "between the two largest sizes, which says most of sizes beyond.",
        ],
        remarks=remarks,
        tables=tables,
        charts=charts,
    )


def swept(findings: Findings, axis: str) -> list[list[Case]]:
    """Families with enough values of an axis, in each setting the one with most."""
    found = []
    for cases in findings.settings.values():
        groups = [group for group in work.families(cases, axis) if len(group) >= VALUES]
        found += groups[:1]
    return found


def _table(findings: Findings, cases: Sequence[Case], axis: str) -> tuple[Table, list[str]]:
    """A row a contender, a column a phase; and who grows faster than in proportion where most do not."""
    where = f"{findings.name(cases[0])}, {work.sizes(cases[0], axis)}"
    found: dict[str, dict[str, str]] = {}
    steep = []
    for phase in findings.phases:
        times: dict[str, list[tuple[int, float]]] = {}
        for case in cases:
            for point in findings.points(case, phase):
                times.setdefault(point.contender, []).append((work.size(case, axis), point.value))
        for contender, pairs in times.items():
            if len(pairs) < VALUES:
                continue
            fit = exponent(*zip(*pairs, strict=True))
            text = f"{fit.value:.2f} ({fit.low:.2f} to {fit.high:.2f}); {fit.last:.2f}"
            found.setdefault(contender, {})[phase] = text
            if axis == "time_steps" and fit.low > STEEP:
                steep.append(f"{contender}: {phase} grows with T to the power {fit.value:.2f} ({where}).")
    rows = [
        [contender, *(by_phase.get(phase, "-") for phase in findings.phases)] for contender, by_phase in found.items()
    ]
    low, high = work.size(cases[0], axis), work.size(cases[-1], axis)
    caption = f"Exponent in {work.NAMES[axis]}, {low} to {high}: {where}"
    return Table(["library", *findings.phases], sorted(rows), caption=caption), steep
