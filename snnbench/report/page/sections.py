"""The sections of a page: the answer, charts with one for each setting at the size with most contenders, and tables."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from snnbench.analysis.abtest import compare_sides
from snnbench.analysis.comparability import Incomparable
from snnbench.analysis.epochs import epochs
from snnbench.cases.case import Case
from snnbench.digest import digest
from snnbench.recording.record import Record
from snnbench.report import answer, wording
from snnbench.report.charts import dots, epoch_parts, firstcall, lines, memory, pareto, split
from snnbench.report.charts import ratios as ratio_lines
from snnbench.report.numbers import counted
from snnbench.report.overview import PEAK, Overview, about_intervals
from snnbench.report.section import PANELS, Chart, Section, Table
from snnbench.report.text import epoch_table
from snnbench.report.text.change_table import changes_of, summary
from snnbench.report.text.recording_tables import measurements

MAX_ROWS = 200
LINE = 300
"""The most characters of a line that are shown."""
REPEATS = "The command runs the same work again, with what is installed there."
PRINTS = "The command prints the worker's output. A side of an A/B test is not replayed alone."


def failures(overview: Overview) -> Section:
    """A row for each contender, kind and reason, with the first of its cells."""
    groups: dict[tuple[str, str, str], list[tuple[str, Record]]] = {}
    for (case, contender), records in overview.failures.items():
        for record in records:
            key = contender, str(record.outcome.kind), str(record.outcome.reason)
            groups.setdefault(key, []).append((overview.label(case), record))
    if not groups:
        return Section("failures", "Failures", ["Nothing failed."])
    rows = []
    for (contender, kind, reason), failed in list(groups.items())[:MAX_ROWS]:
        where, record = failed[0]
        more = f", and {counted(len(failed) - 1, 'cell')} more" if len(failed) > 1 else ""
        way = "--log" if record.side else "--replay"
        command = shlex.join(["snnbench", "show", record.cell, "--in", f"results/{overview.recording.name}", way])
        rows.append([contender, kind, where + more, _short(reason), last_line(record.log) or "-", command])
    left = len(groups) - MAX_ROWS
    return Section(
        "failures",
        "Failures",
        [f"A failed cell has no time anywhere. {PRINTS if overview.recording.sides else REPEATS}"],
        tables=[
            Table(
                ["library", "kind", "where", "reason", "last line of its log", "again"],
                rows,
                texts=6,
                code=frozenset({"last line of its log", "again"}),
            )
        ],
        closing=[f"{left} more kinds of failure are in the recording."] if left > 0 else [],
        brief=f"{counted(len(groups), 'kind')} of failure, with reasons and commands",
    )


def last_line(log: str) -> str:
    """The last line of a worker's standard error that is not empty."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return _short(lines[-1]) if lines else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LINE else text[: LINE - 1] + "\u2026"


def of_epochs(overview: Overview) -> Section:
    """A table and a chart for each group of cases that differ in strategy and workers only."""
    title = epoch_table.TITLE
    shown = next(epoch_table.sections(overview), None)
    if shown is None:
        return Section("epochs", title, ["Left out: no epoch was timed with its loader alone and its network alone."])
    groups = zip(epochs(overview.results).values(), shown.tables, strict=True)
    about = (
        "Parts of an epoch by the loop's own marks. Waiting is the time in which the loop waits for a batch; the "
        "loader's parts are there if the loop loads by itself. The tick is max(loader, compute)."
    )
    charts = [
        epoch_parts.bars(group, table.caption, f"epochs-{number}")
        for number, (group, table) in enumerate(groups, start=1)
    ]
    return replace(shown, sentences=[about], charts=charts)


LIBRARY, WORK, CELL = "library", "work", "cell"


def cells(overview: Overview) -> Section:
    """The tables of all cases in one, with the work and its sizes as columns; library, work and time leave last."""
    title = "Every number"
    tables = {case: measurements(case, results, overview.baseline) for case, results in overview.results.items()}
    filled = {case: table for case, table in tables.items() if table.rows}
    if not overview.headline:
        return Section("cells", title, ["Left out: nothing was timed."])
    columns = list(dict.fromkeys(name for table in filled.values() for name in table.columns))
    axes = wording.axes(filled)
    sizes = [axis for axis in axes if len({getattr(case, axis, None) for case in filled}) > 1]
    rows, anchors = [], []
    names_of_cells = {(one.case, one.label): one.cell for one in reversed(overview.recording.records) if one.phases}
    for case, table in filled.items():
        for row in table.rows:
            values = dict(zip(table.columns, row, strict=True))
            known = [overview.name(case), *(str(getattr(case, axis, "-")) for axis in sizes)]
            rows.append([values[LIBRARY], *known, *(values.get(name, "-") for name in columns if name != LIBRARY)])
            rows[-1].append(names_of_cells.get((case, values[LIBRARY]), "-"))
            anchors.append(anchor(case, values[LIBRARY]))
    names = [LIBRARY, WORK, *(axes[axis][0] for axis in sizes), *(name for name in columns if name != LIBRARY), CELL]
    words = {LIBRARY, WORK, CELL, "version", "verdict"}
    numbers = [name for name in names if name not in words]
    sentences = [
        "A heading sorts by its column, the field filters by words, and a # is the link to its row.",
        "`snnbench show CELL` prints everything about the first trial of a row.",
    ]
    sentences += [f"A ratio is a time over that of {overview.baseline}."] if "ratio" in columns else []
    common = wording.common_sizes(filled) or next(iter(filled)).sizes()
    sentences += [f"All rows: {common}."] if common else []
    leaving = dict.fromkeys(name for table in filled.values() for name in table.leaving)
    order = [CELL, *leaving, "ratio", "verdict", *(axes[axis][0] for axis in sizes)]
    table = Table(names, rows, numbers=numbers, leaving=order, anchors=anchors)
    return Section("cells", title, [" ".join(sentences)], tables=[table])


def anchor(case: Case, contender: str) -> str:
    """The name of a row, which stays the same in every page of the recording."""
    return f"cell-{digest([case.key, contender])}"


def sides(overview: Overview) -> Section:
    """The words of `snnbench compare RECORDING`, decided by the rule of the run."""
    try:
        comparison = compare_sides(overview.recording)
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


MAX_ANSWERS = 40


def headline(overview: Overview) -> Section:
    """For each setting the leaders at each size; then the coverage and the trials that this rests on."""
    about = [f"{answer.coverage(overview.recording)}."]
    if remarks := wording.remarks(overview.recording):
        about.append(f"{remarks}.")
    if not overview.headline:
        return Section("answer", "In short", [answer.UNTIMED], closing=about)
    answers = answer.answers(overview)
    left = len(answers) - MAX_ANSWERS
    more = [f"{left} more are in the tables below."] if left > 0 else []
    closing = [*more, *about, answer.trials(overview)]
    return Section("answer", "In short", answers=answers[:MAX_ANSWERS], closing=closing)


def times(overview: Overview) -> Section:
    """Headline time against neurons if they were swept, else a row per contender."""
    title, phase = "Time", overview.headline
    if not phase:
        return Section("time", title, ["Left out: nothing was timed."])
    makers: list[Callable[[str], Chart]] = []
    for cases in overview.settings.values():
        axis = wording.main_axis(cases[0])
        families = [family for family in wording.families(cases, axis) if len(family) > 1 and overview.timed(family)]
        makers += [partial(lines.against, overview, family, axis, phase) for family in families]
        drawn = {case for family in families for case in family}
        drawn |= {case for axis in cases[0].SIZES for case in wording.swept(cases, axis)}  # in charts of growth
        alone = [case for case in overview.timed(cases) if case not in drawn]
        makers += [partial(dots.at, overview, case, phase) for case in alone]
    intervals = about_intervals(point for case in overview.cases for point in overview.points(case, phase))
    sentences = [
        f"One pass of {phase} in ms: the median over trials of each trial's median{intervals}. The dotted "
        "line is the floor, below which this machine cannot do the work."
    ]
    if not makers:
        sentences.append("Neurons were not swept, but another size was: the charts are those of growth, below.")
    return Section.of_charts("time", title, sentences, makers)


def memories(overview: Overview) -> Section:
    """Stacked bars of memory."""
    title, phase = "Memory", memory.phase_of(overview)
    if not phase:
        return Section("memory", title, ["Left out: memory was not measured."])
    shown = overview.fullest_of_each((phase, PEAK), (phase, "static"))
    makers = [partial(memory.bars, overview, case) for case in shown]
    sentences = [
        f"Of one pass of {phase}, in a process that timed nothing: static (weights, input, cotangent), retained (what "
        "a forward pass leaves for the backward pass), and the peak above these."
    ]
    return Section.of_charts("memory", title, sentences, makers, "what one pass keeps, and its peak")


def fronts(overview: Overview) -> Section:
    """Time against memory."""
    title, phase, held = "Time against memory", overview.headline, memory.phase_of(overview)
    shown = [
        case
        for case in (overview.fullest_of_each((phase, "time"), (held, PEAK)) if phase and held else [])
        if len(pareto.pairs_of(overview, case, phase, held)) > 1
    ]
    if not shown:
        return Section("pareto", title, ["Left out: no two contenders have both a time and a peak in one case."])
    makers = [partial(pareto.scatter, overview, case, phase, held) for case in shown]
    sentences = [
        "No contender is both faster and smaller than one on the Pareto front. Contenders that deviate are left out."
    ]
    return Section.of_charts("pareto", title, sentences, makers, "contenders that no other beats in both")


def splits(overview: Overview) -> Section:
    """Forward and backward."""
    title = "Forward and backward"
    shown = overview.fullest_of_each(("forward", "time"), ("backward", "time"))
    if not shown:
        return Section("split", title, ["Left out: forward and backward were not both timed."])
    makers = [partial(split.bars, overview, case) for case in shown]
    sentences = [
        "Both are timed in passes of their own, with a wait between, so they need not add up to a training pass, "
        "which the tick marks."
    ]
    return Section.of_charts("split", title, sentences, makers, "the two halves of a training pass")


def first_calls(overview: Overview) -> Section:
    """First calls and break-even."""
    title, phase = "First call", overview.headline
    shown = [
        case
        for case in (overview.fullest_of_each((phase, "time"), (phase, "first_call")) if phase else [])
        if any(point.ranked for point in overview.points(case, phase))
    ]
    if not shown:
        return Section("first-call", title, ["Left out: nothing was timed."])
    makers = [partial(firstcall.dumbbells, overview, case, phase) for case in shown]
    sentences = [
        "The first call holds the build and compilation, and is in no other number. A contender with a dear first call "
        "and a cheap pass is ahead in total from some pass on: first call + (passes - 1) * pass. Starting a process is "
        "in neither."
    ]
    return Section.of_charts("first-call", title, sentences, makers, "building and compiling, and when that pays")


def ratios(overview: Overview) -> Section:
    """Tables of ratios to the baseline, a column per case; and a chart for each setting whose main axis was swept."""
    title, base, phase = "Ratio to the baseline", overview.baseline, overview.headline
    shares = []
    for cases in overview.settings.values():
        if table := _ratios(overview, cases, base, phase):
            shares.append(table)
    if not shares:
        why = f"the baseline, {base}, has no time" if base and phase else "the config names no baseline that was timed"
        return Section("ratio", title, [f"Left out: {why}."])
    sentences = [
        f"Time of {phase} divided by that of {base}: above 1 is slower. A contender that deviates has no ratio."
    ]
    charts = [
        ratio_lines.against(overview, family, axis, phase, f"ratio-{number}")
        for number, (axis, family) in enumerate(_swept(overview, base, phase), start=1)
    ]
    return Section(
        "ratio", title, sentences, charts=charts[:PANELS], tables=shares, brief=f"times over those of {base}"
    )


def _swept(overview: Overview, base: str, phase: str) -> list[tuple[str, list[Case]]]:
    """For each setting the largest family along its main axis in which the baseline and another have times."""
    swept = []
    for cases in overview.settings.values():
        axis = wording.main_axis(cases[0])
        family = wording.swept(cases, axis)
        if any(len(by_size) > 1 for by_size in ratio_lines.ratios(overview, family, axis, phase).values()):
            swept.append((axis, family))
    return swept


def _ratios(overview: Overview, cases: Sequence[Case], base: str, phase: str) -> Table | None:
    columns: list[str] = []
    ratios_: dict[str, dict[str, str]] = {}
    for case in cases if phase else ():
        points = {point.contender: point for point in overview.points(case, phase)}
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
        caption=", ".join(part for part in (overview.name(cases[0]), wording.common_sizes(cases)) if part),
    )


def _last(ratio: str | None) -> float:
    """Sort key of a ratio: rows without one come last."""
    return float(ratio) if ratio and ratio != "-" else float("inf")
