"""Tables of results for the site: a row for each contender in each case of each recording."""

from collections.abc import Iterable, Sequence

from snnbench.analysis.results import PHASES
from snnbench.report import wording
from snnbench.report.section import Table
from snnbench.report.site.catalogue import Entry, file_name
from snnbench.units import MIB, MS, number
from snnbench.worker.durations import Summary

VERDICTS = ("exact", "equivalent", "deviates", "failed")


def times(entries: Sequence[Entry], root: str) -> Table:
    """Time, distance from the floor and memory of each entry, to sort and to filter; `root` leads to the first page."""
    rows, anchors, targets = [], [], []
    for entry in entries:
        rows.append(
            [
                entry.result.contender,
                *_numbers(entry),
                entry.result.verdict or "failed",
                f"{entry.case.kind}, {entry.case.sizes()}",
                entry.phase or "-",
                entry.case.device,
                entry.case.dtype,
                entry.day,
                entry.result.version or "-",
                wording.model(entry.recording),
                entry.recording.name,
            ]
        )
        anchors.append(f"{entry.name}-{file_name(entry.recording.name)}")
        targets.append(f"{root}cells/{entry.name}.html")
    numbers = ["ms", "x floor", "MiB"]
    columns = ["library", *numbers, "verdict", "work", "phase", "device", "format", "day", "version", "machine"]
    columns += ["recording"]
    return Table(columns, rows, numbers=numbers, anchors=anchors, targets=targets)


def over_time(entries: Sequence[Entry], root: str) -> Table:
    """Every measurement of one cell, the newest first: the time of each phase with its quartiles, and memory."""
    timed_phases = {phase for entry in entries for phase, metric in entry.result.summaries if metric == "time"}
    phases = [phase for phase in PHASES if phase in timed_phases]
    rows = []
    for entry in entries:
        timed = [entry.result.summaries.get((phase, "time")) for phase in phases]
        trials = max((summary.count for summary in timed if summary), default=0)
        rows.append(
            [
                entry.recording.name,
                wording.model(entry.recording),
                entry.day,
                entry.result.version or "-",
                entry.recording.version or "-",
                entry.result.verdict or "failed",
                *(_spread(summary) for summary in timed),
                *_numbers(entry)[1:],
                str(trials),
                ", ".join(sorted(entry.result.flags)) or "none",
            ]
        )
    numbers = [*(f"{phase} ms" for phase in phases), "x floor", "MiB", "trials"]
    columns = ["recording", "machine", "day", "version", "snnbench", "verdict", *numbers, "flags"]
    targets = [f"{root}recordings/{file_name(entry.recording.name)}.html" for entry in entries]
    return Table(columns, rows, numbers=numbers, targets=targets)


def verdicts(entries: Iterable[Entry]) -> Table:
    """A row for each contender, and for each verdict a column: the kinds of work that have it, by the newest record."""
    newest: dict[str, dict[str, str]] = {}
    for entry in entries:
        kind = f"{entry.case.kind} {entry.case.dtype}"
        newest.setdefault(entry.result.contender, {}).setdefault(kind, entry.result.verdict or "failed")
    rows = []
    for contender, by_kind in sorted(newest.items()):
        kinds = ("; ".join(sorted(kind for kind, word in by_kind.items() if word == verdict)) for verdict in VERDICTS)
        rows.append([contender, *(text or "-" for text in kinds)])
    return Table(["library", *VERDICTS], rows, texts=len(VERDICTS) + 1)


def times_floor(entry: Entry) -> float | None:
    """The time of the headline phase over the floor; None for a deviation, and if either is missing."""
    summary, floor_ns = entry.result.summaries.get((entry.phase, "time")), entry.result.floors_ns.get(entry.phase)
    if summary is None or not floor_ns or entry.result.verdict == "deviates":
        return None
    return summary.median / floor_ns


def _numbers(entry: Entry) -> list[str]:
    """Milliseconds, distance from the floor and MiB of the headline phase."""
    summaries, ratio = entry.result.summaries, times_floor(entry)
    timed = summaries.get((entry.phase, "time"))
    peaks = [summaries[key] for metric in ("device_peak", "host_peak") for key in summaries if key[1] == metric]
    return [
        number(timed.median / MS) if timed else "-",
        f"{ratio:.2f}" if ratio else "-",
        number(peaks[0].median / MIB) if peaks else "-",
    ]


def _spread(summary: Summary | None) -> str:
    if summary is None:
        return "-"
    quartiles = f" ({number(summary.low / MS)}-{number(summary.high / MS)})" if summary.count > 1 else ""
    return number(summary.median / MS) + quartiles
