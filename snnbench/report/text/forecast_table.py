"""The forecast of a config as tables: a row for each contender in each case, and the time of all in one line."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from snnbench.cases.case import Case
from snnbench.report.numbers import counted
from snnbench.report.section import Report, Section, Table
from snnbench.report.text.table import captions
from snnbench.run.estimate import format_duration
from snnbench.run.forecast import SKIPPED, TOO_LARGE, Forecast
from snnbench.units import quantity

LOWER_BOUND = ">=: the bytes of the arrays alone, since no recording has this contender's memory"


def report(forecasts: Sequence[Forecast], most: int = 0, budget_s: float | None = None) -> Report:
    """A table for each case, then all that does not fit, and the whole time.

    `most` are the trials of a race, 0 for no race. `budget_s` is the time that the run may take.
    """
    by_case: dict[Case, list[Forecast]] = {}
    for each in forecasts:
        by_case.setdefault(each.work.case, []).append(each)
    common, own = captions(by_case)
    tables = [replace(_table(group), caption=own[case]) for case, group in by_case.items()]
    legend = [LOWER_BOUND] if any(one.is_lower_bound for one in forecasts) else []
    shown = Section("forecast", "", tables=tables, closing=legend, remarks=list(too_much(forecasts)))
    return Report(notes=[f"all cases: {common}"], sections=[shown], ending=[summary(forecasts, most, budget_s)])


def _table(forecasts: Sequence[Forecast]) -> Table:
    rows = [(one.contender, one.expected, str(one.cells), _memory(one), _time(one), one.reason) for one in forecasts]
    columns = ["library", "expected", "cells", "memory", "time", "reason"]
    if not any(one.reason for one in forecasts):
        columns, rows = columns[:-1], [row[:-1] for row in rows]  # type: ignore[misc]
    return Table(columns, rows, numbers=("cells", "memory", "time"), leaving=("cells",))


def too_much(forecasts: Sequence[Forecast]) -> Iterator[str]:
    """A line for each case in which contenders are expected not to fit, or not to end in time."""
    _, own = captions({one.work.case: None for one in forecasts})
    for words, kinds in (("does not fit", TOO_LARGE), ("exceeds protocol.timeout_seconds", ("timeout",))):
        by_case: dict[Case, list[str]] = {}
        for each in forecasts:
            if each.expected in kinds:
                amount = f" {_memory(each)}" if kinds == TOO_LARGE else ""
                by_case.setdefault(each.work.case, []).append(f"{each.contender}{amount}")
        for case, contenders in by_case.items():
            yield f"{words}: {own[case] or case.sizes()}: {', '.join(contenders)}"


def summary(forecasts: Sequence[Forecast], most: int = 0, budget_s: float | None = None) -> str:
    """`88 cells, about 12 min; 3 of them do not fit`, and what a race adds and a budget leaves out."""
    count = sum(one.cells for one in forecasts)
    unknown = sum(one.cells for one in forecasts if one.seconds is None)
    parts = [counted(count, "cell")]
    if unknown < count:
        parts[0] += f", about {format_duration(sum(one.seconds or 0.0 for one in forecasts))}"
    if budget_s and unknown < count:
        seconds = sum(one.seconds or 0.0 for one in forecasts)
        fitting = min(count, int(budget_s * (count - unknown) / seconds)) if seconds else count
        parts.append(f"about {fitting} of them end within {format_duration(budget_s)}")
    if most:
        parts.append(f"a race: contenders that may lead have up to {most} trials")
    if elsewhere := sum(one.cells for one in forecasts if one.is_elsewhere):
        parts.append(f"the time of {elsewhere} was recorded on another card")
    if unknown:
        parts.append(f"the time of {unknown} is unknown: no recording in results/ on this model of machine")
    for words, kinds in (("do not fit", TOO_LARGE), ("exceed the timeout", ("timeout",)), ("are skipped", SKIPPED)):
        if some := sum(one.cells for one in forecasts if one.expected in kinds):
            parts.append(f"{some} of them {words}")
    return "; ".join(parts)


def _time(forecast: Forecast) -> str:
    skipped = forecast.expected in SKIPPED
    return "-" if skipped or forecast.seconds is None else format_duration(forecast.seconds)


def _memory(forecast: Forecast) -> str:
    if forecast.expected in SKIPPED:
        return "-"
    return (">= " if forecast.is_lower_bound else "") + quantity(forecast.memory_bytes, "bytes")
