"""Tests of the forecast of a config as text and on terminals of two widths."""

from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from snnbench.adapter.contender import Work
from snnbench.analysis.prediction import Prediction, Step
from snnbench.report.terminal import forecast_view
from snnbench.report.text import forecast_table
from snnbench.run.forecast import Forecast, Limits, Plan
from snnbench.units import GIB, MIB
from tests.fakes import CASE

LONG = CASE.with_(time_steps=4000)
SQUARE = (Step("T", "fitted", 2.004),)
MEASURED = Forecast(
    work=Work(CASE, "a-library", "with-a-long-variant"),
    cells=3,
    expected="ok",
    memory_bytes=300.0 * MIB,
    peak=Prediction(20.0 * MIB, "2026-11-21_quick_here"),
    passes={"train": Prediction(5e6, "2026-11-21_quick_here")},
    seconds=12.0,
)
SCALED = Forecast(
    work=Work(LONG, "a-library", "with-a-long-variant"),
    cells=3,
    expected="oom-host",
    memory_bytes=30.0 * GIB,
    peak=Prediction(29.0 * GIB, "2026-11-21_quick_here", (Step("T", "assumed", 1.0), Step("N", "counted"))),
    passes={"train": Prediction(9e9, "2026-11-21_sweep_here", SQUARE)},
    seconds=6.0,
)
UNKNOWN = Forecast(work=Work(LONG, "b", "default"), cells=3, expected="unknown", memory_bytes=5.0 * MIB)
REFUSED = Forecast(
    work=Work(CASE, "b", "default"), cells=3, expected="unsupported", reason="runs on cuda only", seconds=0.0
)
LIMITS = Limits(20.0 * GIB, None, False, 2)


def plan(*forecasts: Forecast, recordings: tuple[str, ...] = ("quick", "sweep"), foreign: tuple[str, ...] = ()) -> Plan:
    return Plan("tiny", "a laptop", LIMITS, ("forward", "train"), forecasts, recordings, foreign)


def drawn(columns: int, shown: Plan) -> list[str]:
    stream = StringIO()
    console = Console(file=stream, width=columns, force_terminal=True, color_system=None, legacy_windows=False)
    forecast_view.show(console, shown)
    return stream.getvalue().splitlines()


def row(shown: Plan, name: str, number: int = 0) -> list[str]:
    lines = [line for line in forecast_table.text(shown).splitlines() if line.startswith(f"{name} ")]
    return lines[number].split()


ALL = plan(MEASURED, REFUSED, SCALED, UNKNOWN)


def test_row_has_numbers_and_their_grounds() -> None:
    name = "a-library/with-a-long-variant"
    assert row(ALL, name)[1:] == ["ok", "300", "MiB", "5", "ms", "12", "s", "measured", "2026-11-21_quick_here"]
    grounds = "oom-host 30 GiB 9 s 6 s time T^2; memory T^1 assumed, N counted 2026-11-21_sweep_here and"
    assert " ".join(row(ALL, name, 1)).startswith(f"{name} {grounds}")


def test_lower_bound_and_refusal_are_marked() -> None:
    assert row(ALL, "b") == ["b", "unsupported", "-", "-", "-", "runs", "on", "cuda", "only"]
    assert row(ALL, "b", 1) == ["b", "unknown", ">=", "5", "MiB", "-", "-", "no", "record"]


@pytest.mark.parametrize(
    ("forecasts", "words"),
    [
        ([MEASURED], "about 12 s for 3 cells"),
        ([MEASURED, SCALED], "about 18 s for 6 cells; 3 cells do not fit"),
        ([MEASURED, UNKNOWN], "about 12 s for 3 of 6 cells; the time of 3 cells is unknown"),
        ([UNKNOWN], "the time of 3 cells is unknown: no record"),
        ([REFUSED], "no cell runs here; 3 cells are skipped"),
        ([MEASURED, REFUSED], "about 12 s for 3 cells; 3 cells are skipped"),
    ],
)
def test_whole_time_is_one_line(forecasts: list[Forecast], words: str) -> None:
    assert forecast_table.text(plan(*forecasts)).splitlines()[-1] == words


def test_work_that_does_not_fit_is_listed_by_case() -> None:
    lines = list(forecast_table.too_much(ALL))
    assert lines == ["does not fit: T=4000 on cpu: a-library/with-a-long-variant 30 GiB"]
    assert list(forecast_table.too_much(plan(MEASURED, UNKNOWN))) == []


@pytest.mark.parametrize(
    ("recordings", "foreign", "words"),
    [
        (("a",), (), ["from 1 recording of this model of machine"]),
        ((), ("b", "c"), ["from 2 recordings of other machines: memory only"]),
        ((), (), ["no recordings here: only the bytes of arrays"]),
    ],
)
def test_source_of_numbers_is_named(recordings: tuple[str, ...], foreign: tuple[str, ...], words: list[str]) -> None:
    first, *others = forecast_table.opening(plan(UNKNOWN, recordings=recordings, foreign=foreign))
    assert first == "tiny on a laptop: 20 GiB of memory" and others == words


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_forecast_fits_the_terminal(columns: int) -> None:
    lines = drawn(columns, ALL)
    assert max(map(cell_len, lines)) <= columns
    text = "\n".join(lines)
    assert (f"{columns} columns leave out: recording" in text) is (columns < 200)
    assert "✗ oom-host" in text and "· unsupported" in text and "✓ ok" in text
    assert "about 18 s for 6 of 9 cells; the time of 3 cells is unknown" in " ".join(lines[-2:])


def test_config_without_phases_has_no_column_of_passes() -> None:
    verified = Plan("tiny", "a laptop", LIMITS, (), [MEASURED])
    _, ((_, table),) = forecast_table.cases(verified)
    assert table.columns == ("library", "expected", "memory", "time", "grounds", "recording")
