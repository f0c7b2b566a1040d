"""The sections of charts: one chart for each setting, at the size with most contenders."""

from collections.abc import Callable, Sequence
from functools import partial

from snnbench.cases.case import Case
from snnbench.report import wording
from snnbench.report.charts import dots, firstcall, lines, memory, pareto, split
from snnbench.report.charts import ratios as ratio_lines
from snnbench.report.findings import PEAK, Findings, about_intervals
from snnbench.report.section import PANELS, Chart, Section, Table


def times(findings: Findings) -> Section:
    """Headline time against neurons if they were swept, else a row per contender."""
    title, phase = "Time", findings.headline
    if not phase:
        return Section("time", title, ["Left out: nothing was timed."])
    makers: list[Callable[[str], Chart]] = []
    for cases in findings.settings.values():
        axis = wording.main_axis(cases[0])
        families = [family for family in wording.families(cases, axis) if len(family) > 1 and findings.timed(family)]
        makers += [partial(lines.against, findings, family, axis, phase) for family in families]
        drawn = {case for family in families for case in family}
        drawn |= {case for axis in cases[0].SIZES for case in wording.swept(cases, axis)}  # in charts of growth
        alone = [case for case in findings.timed(cases) if case not in drawn]
        makers += [partial(dots.at, findings, case, phase) for case in alone]
    sentences = [
        f"One pass of {phase} in ms: the median over trials of each trial's median{_intervals(findings)}. The dotted "
        "line is the floor, below which this machine cannot do the work."
    ]
    if not makers:
        sentences.append("Neurons were not swept, but another size was: the charts are those of growth, below.")
    return Section.of_charts("time", title, sentences, makers)


def _intervals(findings: Findings) -> str:
    return about_intervals(point for case in findings.cases for point in findings.points(case, findings.headline))


def memories(findings: Findings) -> Section:
    """Stacked bars of memory."""
    title, phase = "Memory", memory.phase_of(findings)
    if not phase:
        return Section("memory", title, ["Left out: memory was not measured."])
    shown = findings.fullest_of_each((phase, PEAK), (phase, "static"))
    makers = [partial(memory.bars, findings, case) for case in shown]
    sentences = [
        f"Of one pass of {phase}, in a process that timed nothing: static (weights, input, cotangent), retained (what "
        "a forward pass leaves for the backward pass), and the peak above these."
    ]
    return Section.of_charts("memory", title, sentences, makers)


def fronts(findings: Findings) -> Section:
    """Time against memory."""
    title, phase, held = "Time against memory", findings.headline, memory.phase_of(findings)
    shown = [
        case
        for case in (findings.fullest_of_each((phase, "time"), (held, PEAK)) if phase and held else [])
        if len(pareto.pairs_of(findings, case, phase, held)) > 1
    ]
    if not shown:
        return Section("pareto", title, ["Left out: no two contenders have both a time and a peak in one case."])
    makers = [partial(pareto.scatter, findings, case, phase, held) for case in shown]
    sentences = [
        "No contender is both faster and smaller than one on the Pareto front. Contenders that deviate are left out."
    ]
    return Section.of_charts("pareto", title, sentences, makers)


def splits(findings: Findings) -> Section:
    """Forward and backward."""
    title = "Forward and backward"
    shown = findings.fullest_of_each(("forward", "time"), ("backward", "time"))
    if not shown:
        return Section("split", title, ["Left out: forward and backward were not both timed."])
    makers = [partial(split.bars, findings, case) for case in shown]
    sentences = [
        "Both are timed in passes of their own, with a wait between, so they need not add up to a training pass, "
        "which the tick marks."
    ]
    return Section.of_charts("split", title, sentences, makers)


def first_calls(findings: Findings) -> Section:
    """First calls and break-even."""
    title, phase = "First call", findings.headline
    shown = [
        case
        for case in (findings.fullest_of_each((phase, "time"), (phase, "first_call")) if phase else [])
        if any(point.ranked for point in findings.points(case, phase))
    ]
    if not shown:
        return Section("first-call", title, ["Left out: nothing was timed."])
    makers = [partial(firstcall.dumbbells, findings, case, phase) for case in shown]
    sentences = [
        "The first call holds the build and compilation, and is in no other number. A contender with a dear first call "
        "and a cheap pass is ahead in total from some pass on: first call + (passes - 1) * pass. Starting a process is "
        "in neither."
    ]
    return Section.of_charts("first-call", title, sentences, makers)


def ratios(findings: Findings) -> Section:
    """Tables of ratios to the baseline, a column per case; and a chart for each setting whose main axis was swept."""
    title, base, phase = "Ratio to the baseline", findings.baseline, findings.headline
    shares = []
    for cases in findings.settings.values():
        if table := _ratios(findings, cases, base, phase):
            shares.append(table)
    if not shares:
        why = f"the baseline, {base}, has no time" if base and phase else "the config names no baseline that was timed"
        return Section("ratio", title, [f"Left out: {why}."])
    sentences = [
        f"Time of {phase} divided by that of {base}: above 1 is slower. A contender that deviates has no ratio."
    ]
    charts = [
        ratio_lines.against(findings, family, axis, phase, f"ratio-{number}")
        for number, (axis, family) in enumerate(_swept(findings, base, phase), start=1)
    ]
    return Section("ratio", title, sentences, charts=charts[:PANELS], tables=shares)


def _swept(findings: Findings, base: str, phase: str) -> list[tuple[str, list[Case]]]:
    """For each setting the largest family along its main axis in which the baseline and another have times."""
    swept = []
    for cases in findings.settings.values():
        axis = wording.main_axis(cases[0])
        family = wording.swept(cases, axis)
        if any(len(by_size) > 1 for by_size in ratio_lines.ratios(findings, family, axis, phase).values()):
            swept.append((axis, family))
    return swept


def _ratios(findings: Findings, cases: Sequence[Case], base: str, phase: str) -> Table | None:
    columns: list[str] = []
    ratios_: dict[str, dict[str, str]] = {}
    for case in cases if phase else ():
        points = {point.contender: point for point in findings.points(case, phase)}
        if base not in points or not points[base].ranked:
            continue
        column = wording.varying_sizes(case, cases)
        columns.append(column)
        for name, point in points.items():
            ratio = f"{point.value / points[base].value:.2f}" if point.ranked else "-"
            ratios_.setdefault(name, {})[column] = ratio
    if not columns:
        return None
    order = sorted(ratios_, key=lambda name: [_last(ratios_[name].get(column)) for column in reversed(columns)])
    rows = [[name, *(ratios_[name].get(column, "-") for column in columns)] for name in order]
    return Table(
        ["library", *columns],
        rows,
        caption=", ".join(part for part in (findings.name(cases[0]), wording.common_sizes(cases)) if part),
    )


def _last(ratio: str | None) -> float:
    """Sort key of a ratio: rows without one come last."""
    return float(ratio) if ratio and ratio != "-" else float("inf")
