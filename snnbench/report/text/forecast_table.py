"""The forecast of a config as text: one table for each case, and the time of the whole sweep in one line."""

from collections.abc import Iterator, Sequence

from snnbench.analysis.results import PHASES
from snnbench.cases.case import Case
from snnbench.report.numbers import counted, listed
from snnbench.report.section import Table
from snnbench.report.text import table as tables
from snnbench.report.text.table import captions
from snnbench.run.estimate import format_duration
from snnbench.run.forecast import SKIPPED, TOO_LARGE, Forecast, Plan
from snnbench.units import quantity

LEGEND = (
    "measured: recorded at this size; T^1.9: scaled by a measured exponent; assumed: by an exponent of 1; "
    "counted: by the workload's count of work",
    ">=: a lower bound, the bytes of the arrays alone; time: of all cells of the row",
)


def text(plan: Plan) -> str:
    """All of it, for a program."""
    common, groups = cases(plan)
    lines = [*opening(plan), f"all cases: {common}"]
    for heading, table in groups:
        lines += ["", heading, "", tables.text(table)] if heading else ["", tables.text(table)]
    return "\n".join([*lines, "", *LEGEND, *too_much(plan), summary(plan)]) + "\n"


def opening(plan: Plan) -> list[str]:
    """The machine with its free memory, and the recordings that the numbers come from."""
    room = f"{quantity(plan.limits.host_bytes, 'bytes')} of memory"
    if plan.limits.device_bytes:
        room += f", {quantity(plan.limits.device_bytes, 'bytes')} on a card"
    lines = [f"{plan.name} on {plan.model}: {room}"]
    if plan.recordings:
        lines.append(f"from {counted(len(plan.recordings), 'recording')} of this model of machine")
    if plan.foreign:
        lines.append(f"from {counted(len(plan.foreign), 'recording')} of other machines: memory only")
    return lines if plan.recordings or plan.foreign else [*lines, "no recordings here: only the bytes of arrays"]


def cases(plan: Plan) -> tuple[str, list[tuple[str, Table]]]:
    """The common part of the titles of all cases; and the rest of each title, with the table of the case."""
    by_case: dict[Case, list[Forecast]] = {}
    for each in plan.forecasts:
        by_case.setdefault(each.work.case, []).append(each)
    common, own = captions(by_case)
    return common, [(own[case], _table(group, plan.phases)) for case, group in by_case.items()]


def _table(forecasts: Sequence[Forecast], phases: Sequence[str]) -> Table:
    """A row for each contender of a case."""
    shown = next((phase for phase in PHASES if phase in phases), "")
    columns = ("library", "expected", "memory", *([shown] if shown else []), "time", "grounds", "recording")
    rows = [
        (
            one.contender,
            one.expected,
            _memory(one),
            *([_pass(one, shown)] if shown else []),
            "-" if one.seconds is None or one.expected in SKIPPED else format_duration(one.seconds),
            grounds(one, shown),
            listed(_recordings(one, shown)) if _recordings(one, shown) else "",
        )
        for one in forecasts
    ]
    return Table(columns, rows, numbers=("memory", shown, "time"), leaving=("recording",))


def grounds(forecast: Forecast, phase: str) -> str:
    """How the numbers of a row come about."""
    if forecast.expected in SKIPPED:
        return forecast.reason
    pass_, peak = forecast.passes.get(phase), forecast.peak
    if pass_ and peak:
        return pass_.words if pass_.words == peak.words else f"time {pass_.words}; memory {peak.words}"
    if pass_:
        return f"time {pass_.words}; no record of memory"
    return f"memory {peak.words}; no record of time" if peak else "no record"


def too_much(plan: Plan) -> Iterator[str]:
    """A line for each case in which contenders are expected not to fit, or not to end in time."""
    _, own = captions({one.work.case: None for one in plan.forecasts})
    for words, kinds in (("does not fit", TOO_LARGE), ("exceeds protocol.timeout_seconds", ("timeout",))):
        by_case: dict[Case, list[str]] = {}
        for each in plan.expecting(*kinds):
            amount = f" {_memory(each)}" if kinds == TOO_LARGE else ""
            by_case.setdefault(each.work.case, []).append(f"{each.contender}{amount}")
        for case, contenders in by_case.items():
            yield f"{words}: {own[case] or case.sizes()}: {', '.join(contenders)}"


def summary(plan: Plan) -> str:
    """`about 12 min for 88 cells; 3 cells do not fit`."""
    skipped = _cells(plan.expecting(*SKIPPED))
    unknown, planned = plan.untimed_cells, plan.cells - skipped
    if unknown == planned:
        parts = [f"the time of {counted(planned, 'cell')} is unknown: no record"] if planned else ["no cell runs here"]
    elif unknown:
        parts = [f"about {format_duration(plan.seconds)} for {planned - unknown} of {planned} cells"]
        parts.append(f"the time of {counted(unknown, 'cell')} is unknown")
    else:
        parts = [f"about {format_duration(plan.seconds)} for {counted(planned, 'cell')}"]
    for count, singular, plural in (
        (_cells(plan.expecting(*TOO_LARGE)), "does not fit", "do not fit"),
        (_cells(plan.expecting("timeout")), "exceeds the timeout", "exceed the timeout"),
        (skipped, "is skipped", "are skipped"),
    ):
        parts += [f"{counted(count, 'cell')} {singular if count == 1 else plural}"] if count else []
    return "; ".join(parts)


def _cells(forecasts: Sequence[Forecast]) -> int:
    return sum(one.cells for one in forecasts)


def _memory(forecast: Forecast) -> str:
    if forecast.expected in SKIPPED:
        return "-"
    return ("" if forecast.peak else ">= ") + quantity(forecast.memory_bytes, "bytes")


def _pass(forecast: Forecast, phase: str) -> str:
    prediction = forecast.passes.get(phase)
    return quantity(prediction.value, "ns") if prediction else "-"


def _recordings(forecast: Forecast, phase: str) -> list[str]:
    """The recordings behind a row, each once."""
    used = (forecast.passes.get(phase), forecast.peak)
    return list(dict.fromkeys(prediction.recording for prediction in used if prediction))
