"""The report in Markdown: one table for every case, contenders by the time of their training pass."""

from collections import Counter
from collections.abc import Iterable, Sequence

from snnbench import measures
from snnbench.analysis.results import PHASES, Result, headline, reasons, results_by_case
from snnbench.cases.case import Case
from snnbench.proof.tolerance import RATE_WINDOW
from snnbench.recording.reading import Recording
from snnbench.report.section import Table
from snnbench.report.text import epoch_table, over_cases
from snnbench.report.text import table as tables
from snnbench.report.wording import measured_of, missing, model, remarks, title
from snnbench.units import MIB, number
from snnbench.worker.durations import Summary

DISTANCES = (
    "library",
    "held to its own rule",
    "places that agree",
    "spikes per step",
    "of this neuron",
    "cosine of gradients",
)


def markdown(recordings: Sequence[Recording], heading: str = "##") -> str:
    """Tables of all recordings."""
    return "\n".join(part for recording in recordings for part in _recording(recording, heading)).rstrip() + "\n"


def coverage(recording: Recording) -> str:
    """The number of measured cells, the outcomes of the others, and the cells that are missing."""
    records = recording.records
    others = Counter(record.outcome.kind for record in records if record.status != "measured")
    measured = sum(record.status == "measured" for record in records)
    rest = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
    lacking = missing(recording) if recording.closed else ""
    parts = [measured_of(recording, measured), rest, lacking, remarks(recording)]
    return "; ".join(part for part in parts if part)


def _recording(recording: Recording, heading: str) -> list[str]:
    parts = [
        f"{heading} {tables.escaped(recording.name)}",
        "",
        f"{tables.escaped(model(recording))}. {coverage(recording)}.",
        "",
    ]
    by_case = results_by_case(recording.records)
    for case, results in by_case.items():
        parts += [f"{heading}# {title(case)}", "", *_table(case, results, recording.baseline), ""]
    for about, fed in epoch_table.tables(by_case):
        parts += [f"{heading}# {about}", "", tables.markdown(fed), ""]
    if sentences := epoch_table.sentences(by_case, recording.records):
        parts += [*(f"- {sentence}" for sentence in sentences), ""]
    for phase in headline(recording.records):
        for about, table, legend in over_cases.tables(by_case, phase):
            parts += [f"{heading}# {about}", "", tables.markdown(table), "", legend, ""]
    return parts


def _table(case: Case, results: list[Result], baseline: str) -> list[str]:
    shown = [result for result in results if result.verdict]
    times = measurements(case, results, baseline)
    lines = [tables.markdown(times), ""] if times.rows else []
    lines += _distances(shown)
    lines += _checked(shown)
    return lines + [f"- {contender}: {tables.escaped(reason)}" for contender, reason in reasons(results)]


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


def _checked(shown: list[Result]) -> list[str]:
    """The extent of the comparison with the reference: one line for all, or one for each extent."""
    by_extent = extents(shown)
    if len(by_extent) == 1:
        return [f"Checked: {next(iter(by_extent))}.", ""]
    return [*(f"- checked: {extent} ({', '.join(names)})" for extent, names in by_extent.items())]


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
    """The distances as a table; without rows if no contender deviates."""
    return Table(DISTANCES, distances(results), texts=2, leaving=("held to its own rule", *DISTANCES[3:5]))


def _distances(results: Iterable[Result]) -> list[str]:
    table = distance_table(results)
    return [tables.markdown(table), ""] if table.rows else []


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
