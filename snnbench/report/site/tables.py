"""Tables of results for the site: a row for each contender in each case of each recording."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from snnbench.analysis.case_words import RESETS
from snnbench.analysis.results import PHASES
from snnbench.report import wording
from snnbench.report.numbers import listed
from snnbench.report.section import Table
from snnbench.report.site.catalogue import Entry, file_name
from snnbench.units import MIB, MS, number
from snnbench.worker.durations import Summary

VERDICTS = ("exact", "equivalent", "deviates", "failed")
"""From the best to the worst."""
PLAIN = "linear layers and neurons"
NAMED = 4
"""The most kinds of work that a row names."""
AS_WORD = {"equivalent": "is equivalent", "deviates": "deviates", "failed": "failed"}


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


@dataclass(frozen=True, slots=True)
class Work:
    """A family of work: a workload with one reset and format. `kinds` maps each kind of it to contender -> verdict."""

    workload: str
    profile: str
    number_format: str
    kinds: dict[str, dict[str, str]]

    @property
    def best(self) -> str:
        """The verdict that each kind has from some contender at least."""
        return max((min(by.values(), key=VERDICTS.index) for by in self.kinds.values()), key=VERDICTS.index)

    @property
    def words(self) -> str:
        """`NIR graph (7 kinds), reset to zero`; few kinds are named."""
        names = [name.split() for name in self.kinds]
        alike = takewhile(lambda words: len(set(words)) == 1, zip(*names, strict=False)) if len(names) > 1 else ()
        common = [words[0] for words in alike]
        kinds = [" ".join(name[len(common) :]) for name in names]
        if len(names) <= NAMED:
            name = " ".join([*common, listed(kinds)])
        else:
            name = f"{' '.join(common).rstrip(',') or self.workload} ({len(names)} kinds)"
        parts = [
            name or PLAIN,
            RESETS[self.profile],
            *([self.number_format] if self.number_format != "float32" else []),
        ]
        return ", ".join(parts)


def works(entries: Iterable[Entry]) -> list[Work]:
    """The families of work of these entries, by the newest verdict of each contender; plain layers come first."""
    found: dict[tuple[str, str, str], Work] = {}
    for entry in entries:
        case = entry.case
        kind = case.kind.removesuffix(case.profile).rstrip(", ")
        key = (case.workload if kind else "", case.profile, case.product_format)
        by_contender = found.setdefault(key, Work(*key, {})).kinds.setdefault(kind, {})
        by_contender.setdefault(entry.result.contender, entry.result.verdict or "failed")
    return [found[key] for key in sorted(found)]


def verdicts(known: Sequence[Work]) -> Table:
    """A row for each family of work: the exact variants, and those with another verdict."""
    return Table(["work", "exact", "otherwise"], [[work.words, *_verdicts(work)] for work in known], texts=3)


def _verdicts(work: Work) -> tuple[str, str]:
    names = sorted({name for by in work.kinds.values() for name in by})
    exact, otherwise = [], []
    for contender in names:
        name = contender.partition("/")[2] or contender
        by_kind = {kind: by[contender] for kind, by in work.kinds.items() if contender in by}
        kinds = {verdict: [kind for kind, word in by_kind.items() if word == verdict] for verdict in VERDICTS}
        own = f"{name} ({len(kinds['exact'])} of {len(by_kind)})" if len(kinds["exact"]) < len(by_kind) else name
        exact += [own] if kinds["exact"] else []
        for verdict in VERDICTS[1:]:
            if kinds[verdict]:
                where = f" in {listed(kinds[verdict])}" if len(work.kinds) > 1 else ""
                otherwise.append(f"{name} {AS_WORD[verdict]}{where}")
    return ", ".join(exact) or "none", "; ".join(otherwise)


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
