"""The section of growth: the exponents of times in each swept size."""

from collections.abc import Sequence

from snnbench.analysis.exponent import exponent
from snnbench.cases.case import Case
from snnbench.report import wording
from snnbench.report.charts import lines
from snnbench.report.overview import Overview
from snnbench.report.section import Chart, Section, Table

PANELS = 12
"""The most tables."""
STEEP_EXCESS = 0.5
"""If the whole interval of an exponent is so far above that of the work, the next whole power is nearer."""
POWERS = {2: "with the square of", 3: "with the cube of"}
NEAR = 0.25
"""An exponent this near to a whole number is called by it."""


def section(overview: Overview) -> Section:
    """Exponents of every axis with three values, and a chart for each but neurons, which another section shows."""
    charts: list[Chart] = []
    tables: list[Table] = []
    remarks: list[str] = []
    settings = overview.settings.values()
    axes = wording.axes(overview.cases)
    families = [(axis, wording.swept(cases, axis)) for axis in axes for cases in settings]
    families = [(axis, cases) for axis, cases in families if overview.timed(cases)]
    for axis, cases in families[:PANELS]:
        table, steep = _table(overview, cases, axis)
        tables += [table] if table.rows else []
        remarks += steep
        if axis != wording.main_axis(cases[0]):
            name = f"scaling-{axis.replace('_', '-')}-{len(charts) + 1}"
            charts.append(lines.against(overview, cases, axis, overview.headline, name))
    left = len(families) - PANELS
    title = "Growth with each size"
    if not families:
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
        brief="exponents of times",
        closing=[f"{left} more sweeps are left out; their numbers are in the tidy data (--format csv)."]
        if left > 0
        else [],
    )


def _power(exponent: float) -> str:
    """`with the square of`, or `with the power 1.61 of`."""
    whole = round(exponent)
    return POWERS[whole] if whole in POWERS and abs(exponent - whole) <= NEAR else f"with the power {exponent:.2f} of"


def _table(overview: Overview, cases: Sequence[Case], axis: str) -> tuple[Table, list[str]]:
    """A row per contender, a column per phase; and remarks on contenders that grow faster than the work."""
    where = f"{overview.name(cases[0])}: {wording.sizes(cases[0], axis)}"
    cells: dict[str, dict[str, str]] = {}
    steep = []
    for phase in overview.phases:
        times: dict[str, list[tuple[int, float]]] = {}
        for case in cases:
            for point in overview.points(case, phase):
                times.setdefault(point.contender, []).append((wording.size(case, axis), point.value))
        for contender, pairs in times.items():
            if len(pairs) < wording.FEWEST_VALUES:
                continue
            fit = exponent(*zip(*pairs, strict=True))
            text = f"{fit.value:.2f} ({fit.low:.2f} to {fit.high:.2f}); {fit.last:.2f}"
            cells.setdefault(contender, {})[phase] = text
            if fit.low > cases[0].growth(axis) + STEEP_EXCESS:
                steep.append(f"{contender}: {phase} grows {_power(fit.value)} {cases[0].SIZES[axis][0]} ({where}).")
    rows = [
        [contender, *(by_phase.get(phase, "-") for phase in overview.phases)] for contender, by_phase in cells.items()
    ]
    low, high = wording.size(cases[0], axis), wording.size(cases[-1], axis)
    caption = f"Exponent in {wording.axis_name(cases[0], axis)}, {low} to {high}: {where}"
    return Table(["library", *overview.phases], sorted(rows), caption=caption), steep
