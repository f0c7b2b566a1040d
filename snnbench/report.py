"""The report: one Markdown table for every case, contenders by the time of their training pass."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from snnbench.case import Case
from snnbench.record import Record, Recording
from snnbench.statistics import Summary, summarise
from snnbench.tidy import contender, incorrect, metrics, pair

PHASES = ("train", "forward", "backward", "inference")
MIB = 1 << 20
Metric = tuple[str, str]
"""(phase, metric)."""


@dataclass(slots=True)
class Standing:
    """One contender in one case: a summary over trials for each metric, or why there is none."""

    contender: str
    version: str
    verdict: str = ""
    summaries: dict[Metric, Summary] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)

    @property
    def order(self) -> tuple[int, float, str]:
        """Exact ones by time, then the equivalent, then those that deviate, then those without a time."""
        time = next((self.summaries[p, "time"].median for p in PHASES if (p, "time") in self.summaries), None)
        ranks = {"exact": 0, "equivalent": 1, "deviates": 2}
        return ranks.get(self.verdict, 3), float("inf") if time is None else time, self.contender


def standings(records: Iterable[Record]) -> dict[Case, list[Standing]]:
    """Contenders by case, each list in the order of a table."""
    records = list(records)
    wrong = incorrect(records)
    grouped: dict[Case, dict[str, list[Record]]] = {}
    for record in records:
        grouped.setdefault(Case(**record.case), {}).setdefault(contender(record), []).append(record)
    result = {}
    for case in sorted(grouped, key=_case_order):
        found = [_standing(name, group, pair(group[0]) in wrong) for name, group in grouped[case].items()]
        result[case] = sorted(found, key=lambda standing: standing.order)
    return result


def markdown(recordings: Sequence[Recording], heading: str = "##") -> str:
    """Tables of all recordings."""
    return "\n".join(part for recording in recordings for part in _recording(recording, heading)) + "\n"


def coverage(records: Iterable[Record]) -> str:
    """How many cells were measured, and what became of the others."""
    records = list(records)
    others = Counter(record.outcome["kind"] for record in records if record.status != "measured")
    measured = sum(record.status == "measured" for record in records)
    rest = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
    return f"{measured} of {len(records)} cells measured" + (f"; {rest}" if rest else "")


def title(case: Case) -> str:
    """A case in one line."""
    layers = "" if case.layers == 1 else f", {case.layers} layers"
    return (
        f"{case.profile}: N={case.neurons}, B={case.batch}, T={case.time_steps}{layers} on {case.device}, "
        f"{case.dtype} ({case.precision}), beta={case.beta:g}, {case.surrogate}({case.slope:g}), {case.threads} threads"
    )


def _recording(recording: Recording, heading: str) -> list[str]:
    config = recording.config.get("config", {})
    parts = [
        f"{heading} {recording.name}",
        "",
        f"{recording.machine.get('model', 'unknown machine')}. {coverage(recording.records)}.",
        "",
    ]
    for case, found in standings(recording.records).items():
        parts += [f"{heading}# {title(case)}", "", *_table(found, str(config.get("baseline", ""))), ""]
    return parts


def _table(found: list[Standing], baseline: str) -> list[str]:
    shown = [standing for standing in found if standing.verdict]
    base = next((s for s in shown if s.contender == baseline or s.contender.startswith(f"{baseline}/")), None)
    phases = [p for p in PHASES if any((p, "time") in standing.summaries for standing in shown)]
    memory = next((p for p in PHASES for s in shown if (p, "static") in s.summaries), None)
    place = "device" if any((memory, "device_peak") in s.summaries for s in shown) else "host"
    columns = ["library", "version", "verdict"]
    columns += [f"{phase} ms" for phase in phases[:1]] + (["ratio"] if phases and base else [])
    columns += [f"{phase} ms" for phase in phases[1:]]
    columns += [f"{place} peak MiB", "retained MiB"] if memory else []
    columns += ["first call ms", "trials"] if phases else []
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * 3 + " ---: |" * (len(columns) - 3)] if shown else []
    for standing in shown:
        cells = [standing.contender, standing.version, standing.verdict]
        if phases:
            cells += [_spread(standing.summaries.get((phases[0], "time")), 1e6)]
            cells += [_ratio(standing, base, phases[0])] if base else []
            cells += [_value(standing.summaries.get((phase, "time")), 1e6) for phase in phases[1:]]
        if memory:
            cells += [_value(standing.summaries.get((memory, f"{place}_{m}")), MIB) for m in ("peak", "retained")]
        if phases:
            timed = standing.summaries.get((phases[0], "time"))
            cells += [_value(standing.summaries.get((phases[0], "first_call")), 1e6)]
            cells += [f"{timed.count if timed else 0}{''.join(f' {flag}' for flag in sorted(standing.flags))}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [""] if shown else []
    return lines + [f"- {s.contender}: {reason}" for s in found for reason in s.reasons]


def _standing(name: str, records: list[Record], wrong: bool) -> Standing:
    version = next((record.version for record in records if record.version), None)
    standing = Standing(name, version or "")
    values: dict[Metric, list[float]] = {}
    for record in records:
        if record.status != "measured":
            reason = f"{record.status}: {record.outcome['kind']}: {record.outcome['reason']}"
            standing.reasons += [reason] if reason not in standing.reasons else []
            continue
        standing.flags |= set(record.flags)
        for phase, metric, _, value in metrics(record):
            values.setdefault((phase, metric), []).append(value)
    if not wrong:
        verdicts = [str(record.outcome["verdict"]) for record in records if record.status == "measured"]
        standing.verdict = max(verdicts, key=["exact", "equivalent", "deviates"].index, default="")
        standing.summaries = {metric: summarise(found) for metric, found in values.items()}
    return standing


def _case_order(case: Case) -> tuple[Any, ...]:
    return case.device, case.dtype, case.precision, case.profile, case.layers, case.neurons, case.time_steps, case.key


def _ratio(standing: Standing, base: Standing, phase: str) -> str:
    mine, other = (s.summaries.get((phase, "time")) for s in (standing, base))
    return f"{mine.median / other.median:.2f}" if mine and other and standing.verdict != "deviates" else "-"


def _value(summary: Summary | None, unit: float) -> str:
    return "-" if summary is None else _number(summary.median / unit)


def _spread(summary: Summary | None, unit: float) -> str:
    if summary is None:
        return "-"
    quartiles = f" ({_number(summary.low / unit)}-{_number(summary.high / unit)})" if summary.count > 1 else ""
    return _number(summary.median / unit) + quartiles


def _number(value: float) -> str:
    """Three digits, as a reader compares them."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
