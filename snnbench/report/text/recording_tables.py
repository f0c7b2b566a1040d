"""The report of a recording in words and tables: one for every case, contenders by the time of their first phase."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from snnbench import measures
from snnbench.analysis.results import PHASES, Result, reasons
from snnbench.cases.case import Case
from snnbench.proof.tolerance import RATE_WINDOW
from snnbench.recording.reading import Recording
from snnbench.report import answer
from snnbench.report.numbers import gathered, listed
from snnbench.report.overview import Overview, find
from snnbench.report.section import Report, Section, Table
from snnbench.report.text import crossover_table, epoch_table, exchange_table, pipeline_table
from snnbench.report.text.table import captions
from snnbench.report.wording import heading, model, remarks, varying_sizes
from snnbench.units import MIB, number
from snnbench.worker.durations import Summary

RATIO = "ratio: time over that of {}; x floor: time over the least that this machine needs for the products and bytes"
EXACT = "exact: the spikes and gradients of the float64 reference, up to the rounding of the case's own number format"
DISTANCES = (
    "library",
    "held to its own rule",
    "places that agree",
    "spikes per step",
    "of this neuron",
    "cosine of gradients",
)
LEAVING = ("held to its own rule", *DISTANCES[3:5])
"""The columns of distances that leave first."""


def report(recording: Recording) -> Report:
    """The answer of a recording, its tables, and the reasons of contenders without a time."""
    overview = find(recording)
    about = f"{model(recording)}. {answer.coverage(recording)}."
    about += f" {lines}." if (lines := remarks(recording)) else ""
    return Report(recording.name, about, sections=[section for make in SECTIONS for section in make(overview)])


def _answer(overview: Overview) -> Iterator[Section]:
    if overview.results:
        yield Section("answer", "", answer.summary(overview))


def _times(overview: Overview) -> Iterator[Section]:
    """A table of each case."""
    measured = {case: measurements(case, of, overview.baseline) for case, of in overview.results.items()}
    has_ratios = any("ratio" in table.columns for table in measured.values())
    legend = [EXACT] if any(one.verdict == "exact" for each in overview.results.values() for one in each) else []
    legend += [RATIO.format(overview.baseline)] if has_ratios else []
    common, own = captions(overview.cases)
    shared = [f"All cases: {common}."] if len(own) > 1 else []
    yield Section("times", "", shared, tables=_captioned(overview, measured), closing=legend)


def _distances(overview: Overview) -> Iterator[Section]:
    """How far deviating contenders are from the neuron of each case."""
    title = "Distance of deviating contenders from the case's own neuron"
    away = {case: distance_table(of) for case, of in overview.results.items()}
    if tables := _captioned(overview, away):
        yield Section("distances", title, tables=tables)


def _captioned(overview: Overview, by_case: Mapping[Case, Table]) -> list[Table]:
    """The tables with rows. A caption is what differs between the cases; that of a single case is its title."""
    own = captions(overview.cases)[1]
    names = own if len(own) > 1 else {case: heading(case) for case in own}
    return [replace(table, caption=names[case]) for case, table in by_case.items() if table.rows]


def _measures(overview: Overview) -> Iterator[Section]:
    for shown in measures.reports().values():
        yield from shown.sections(overview)


def _reasons(overview: Overview) -> Iterator[Section]:
    """Why contenders have no time, and how much of the answers was compared with the reference."""
    yield Section("reasons", "", remarks=reasons_of(overview), closing=checked(overview))


SECTIONS: tuple[Callable[[Overview], Iterable[Section]], ...] = (
    *(_answer, _times, _distances),
    *(epoch_table.sections, pipeline_table.sections, crossover_table.sections, _measures, _reasons),
    exchange_table.sections,
)
"""The sections of a recording's report in their order. One without data is left out."""


def reasons_of(overview: Overview, failures: bool = True) -> list[str]:
    """Each reason once: why a contender takes no part, how it deviates and, on request, how it failed.

    The size of a deviation differs from case to case. With several cases it is left out where the distances have it.
    """
    several = len(overview.results) > 1
    measured = {one.contender for results in overview.results.values() for one in results if one.distance}

    def short(contender: str, reason: str) -> str:
        leaves_size = several and contender in measured and reason.startswith("deviates: ")
        return reason.partition(" (up to ")[0] if leaves_size else reason

    sentences = (
        (overview.name(case), f"{contender}: {short(contender, reason)}")
        for case, results in overview.results.items()
        for contender, reason in reasons(results)
        if failures or not reason.startswith("failed")
    )
    return gathered(sentences, map(overview.name, overview.cases))


def checked(overview: Overview) -> list[str]:
    """How much of the answers was compared with the reference: once for all work, or by cases and contenders.

    Cases of a setting with the same extents are named together. A recording without extents gives no sentence.
    """
    sentences: list[str] = []
    different: set[str] = set()
    for cases in overview.settings.values():
        alike: dict[tuple[tuple[str, str], ...], list[Case]] = {}
        for case in cases:
            by_extent = extents(overview.results[case])
            named = {extent: f" ({listed(names)})" * (len(by_extent) > 1) for extent, names in by_extent.items()}
            alike.setdefault(tuple(named.items()), []).append(case)
            different |= by_extent.keys()
        for compared, some in alike.items():
            sizes = listed([varying_sizes(case, cases) for case in some])
            where = overview.name(some[0]) + (f", {sizes}" if len(alike) > 1 else "")
            sentences += [f"Checked in {where}: {extent}{names}." for extent, names in compared]
    return sentences if len(different) > 1 else [f"Checked: {extent}." for extent in different]


def measurements(case: Case, results: list[Result], baseline: str) -> Table:
    """The times and the memory of each contender with a verdict in one case, by the time of the first phase."""
    shown = [result for result in results if result.verdict]
    base = next((s for s in shown if s.contender == baseline and s.verdict != "deviates"), None)
    phases = [p for p in PHASES if any((p, "time") in result.summaries for result in shown)]
    memory = next((p for p in PHASES for s in shown if (p, "static") in s.summaries), None)
    memory_of = "device" if any((memory, "device_peak") in s.summaries for s in shown) else "host"
    sizes = [f"{memory_of} peak MiB", "retained MiB"] if memory else []
    other_times = [f"{phase} ms" for phase in phases[1:]]
    columns = ["library", "version", "verdict"]
    columns += [f"{phase} ms" for phase in phases[:1]] + (["ratio"] if phases and base else [])
    columns += ["x floor"] if phases else []
    rates = [f"{case.SAMPLES}/s"] if phases and case.SAMPLES else []
    columns += rates
    further = [
        one
        for one in measures.reports().values()
        if phases and any((phases[0], one.metric) in result.summaries for result in shown)
    ]
    headings = [one.heading(phases[0]) for one in further]
    columns += headings + other_times + sizes
    columns += ["first call ms", "trials"] if phases else []
    rows = []
    for result in shown:
        if not phases and not memory and result.distance:
            continue
        cells = [result.contender, result.version, result.verdict]
        if phases:
            cells += [_spread(result.summaries.get((phases[0], "time")), 1e6)]
            cells += [_ratio(result, base, phases[0])] if base else []
            cells += [_times_floor(result, phases[0])]
            cells += [_rate(case, result.summaries.get((phases[0], "time")))] if rates else []
            cells += [one.cell(result, phases[0]) for one in further]
            cells += [_value(result.summaries.get((phase, "time")), 1e6) for phase in phases[1:]]
        if memory:
            cells += [_value(result.summaries.get((memory, f"{memory_of}_{m}")), MIB) for m in ("peak", "retained")]
        if phases:
            timed = result.summaries.get((phases[0], "time"))
            cells += [_value(result.summaries.get((phases[0], "first_call")), 1e6)]
            cells += [f"{timed.count if timed else 0}{''.join(f' {flag}' for flag in sorted(result.flags))}"]
        rows.append(cells)
    leaving = (*sizes[1:], "first call ms", *reversed(other_times), *sizes[:1], "trials", "version", *rates, *headings)
    leaving += ("x floor",)
    return Table(columns, rows, texts=3, leaving=leaving, bars="ratio")


def extents(results: Iterable[Result]) -> dict[str, list[str]]:
    """Extent of the comparison with the reference -> the contenders with an answer compared to that extent."""
    by_extent: dict[str, list[str]] = {}
    for result in results:
        if result.checked and result.verdict:
            by_extent.setdefault(result.checked, []).append(result.contender)
    return by_extent


def distances(results: Iterable[Result]) -> list[list[str]]:
    """Rows of deviating contenders: the distance of their answers from the case's own neuron on the same currents."""
    rows = []
    for result in results:
        if not (check := result.distance):
            continue
        cosines = check["cosines"]
        cosine = cosines.get("weight", cosines.get("input"))  # neurons alone have no weight
        silent = check["rate"] < RATE_WINDOW[0]
        own = ("in the exam; too silent here" if silent else "yes") if result.own_rule else "none declared"
        cells = [result.contender, own]
        cells += [f"{1 - check['differing'] / check['compared']:.2%}", f"{check['rate']:.3g}"]
        rows.append([*cells, f"{check['expected_rate']:.3g}", "-" if cosine is None else f"{cosine:.3f}"])
    return rows


def distance_table(results: Iterable[Result]) -> Table:
    """The distances as a table; without rows if no contender with a verdict deviates."""
    shown = [result for result in results if result.verdict]
    return Table(DISTANCES, distances(shown), texts=2, leaving=LEAVING)


def _ratio(result: Result, base: Result, phase: str) -> str:
    mine, other = (s.summaries.get((phase, "time")) for s in (result, base))
    return f"{mine.median / other.median:.2f}" if mine and other and result.verdict != "deviates" else "-"


def _times_floor(result: Result, phase: str) -> str:
    mine, floor_ns = result.summaries.get((phase, "time")), result.floors_ns.get(phase)
    return f"{mine.median / floor_ns:.2f}" if mine and floor_ns and result.verdict != "deviates" else "-"


def _rate(case: Case, summary: Summary | None) -> str:
    """The samples that passes process in a second."""
    return "-" if summary is None else number(case.samples_in_pass / (summary.median / 1e9))


def _value(summary: Summary | None, unit: float) -> str:
    return "-" if summary is None else number(summary.median / unit)


def _spread(summary: Summary | None, unit: float) -> str:
    if summary is None:
        return "-"
    quartiles = f" ({number(summary.low / unit)}-{number(summary.high / unit)})" if summary.count > 1 else ""
    return number(summary.median / unit) + quartiles
