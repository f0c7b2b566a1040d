"""The output of `snnbench nir`: a row for each graph, time step and library, as a report, CSV and JSON."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from snnbench.conformance.network import BUSIEST
from snnbench.recording.conformance import Conformance, Row, read
from snnbench.recording.reading import IMPORTERS
from snnbench.report.overview import Overview
from snnbench.report.section import Report, Section, Table
from snnbench.report.text.table import to_csv

COLUMNS = ("graph", "dt s", "library", "version", "verdict", "rate", "expected", "differ", "first at", "cause")
NUMBERS = ("dt s", "rate", "expected", "differ", "first at")
CSV_COLUMNS = (
    *("graph", "dt_s", "library", "version", "verdict", "rate", "expected_rate", "compared", "differing"),
    *("first_t", "first_sample", "first_neuron", "got", "expected", "most_spikes", "cause", "reason"),
)
LEGEND = (
    "exact: the graph by forward Euler at dt, at every position up to the rounding of float32",
    "deviates: another interpretation of the graph at every position, which the cause names; incorrect: no known one",
    "rate, expected: spikes per neuron and step of the library and of the graph; differ: share of the positions",
    "first at: step, sample and neuron of the first wrong output",
)


def report(conformance: Conformance, is_brief: bool = False) -> Report:
    """Every verdict, then each difference, then the causes and the reasons of importers without an output.

    A brief report has all in one table, which is less wide.
    """
    compared = [row for row in conformance.rows if row.comparison and row.verdict != "exact"]
    words = [row.verdict for row in conformance.rows]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    whole = [verdicts(conformance.rows), *([rows_of(compared)] if compared else [])]
    tables = [rows_of(conformance.rows)] if is_brief else whole
    return Report(
        about=title(conformance),
        sections=[Section("verdicts", "", tables=tables, closing=LEGEND, remarks=explanations(conformance.rows))],
        ending=[f"{len(words)} rows: {counts}"],
    )


def sections(overview: Overview) -> Iterator[Section]:
    """The verdicts on the importers beside a recording of NIR graphs, and their causes."""
    path = overview.recording.folder / IMPORTERS
    if not path.exists():
        return
    rows = read(path).rows
    yield Section(
        "importers",
        "What the libraries' own importers make of the graphs",
        tables=[verdicts(rows)],
        closing=LEGEND[:2],
        remarks=explanations(rows),
    )


def verdicts(rows: Iterable[Row]) -> Table:
    """A row for each graph and time step, with its spikes per step, and a column for each library."""
    by_cell: dict[tuple[str, str], dict[str, str]] = {}
    rates: dict[tuple[str, str], str] = {}
    for row in rows:
        cell = row.graph, f"{row.dt:g}"
        by_cell.setdefault(cell, {})[f"{row.library} {row.version}"] = row.verdict
        rates[cell] = rates.get(cell) or _number(row.comparison.get("expected_rate"))
    libraries = list(dict.fromkeys(name for cells in by_cell.values() for name in cells))
    lines = [[*cell, rates[cell], *(words.get(name, "") for name in libraries)] for cell, words in by_cell.items()]
    return Table(("graph", "dt s", "rate", *libraries), lines, numbers=("dt s", "rate"))


def title(conformance: Conformance) -> str:
    """The input of all graphs, and the version of snnbench."""
    rate = "" if conformance.rate is None else f", input rate {conformance.rate:g}"
    amplitude = "" if conformance.amplitude == 1 else f", amplitude {conformance.amplitude:g}"
    of_input = f"T={conformance.time_steps}, B={conformance.batch}, seed {conformance.seed}{rate}{amplitude}"
    return f"{of_input}, snnbench {conformance.version}"


def rows_of(rows: Iterable[Row]) -> Table:
    """The table itself. On a narrow terminal the cause leaves first, for `explanations` has it in full."""
    leaving = ("cause", "version", "expected", "rate")
    return Table(COLUMNS, [_cells(row) for row in rows], numbers=NUMBERS, leaving=leaving)


def explanations(rows: Iterable[Row]) -> list[str]:
    """Every cause and every reason once, with its library, its graphs and its time steps."""
    where: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if words := _cause(row):
            where.setdefault((row.library, f"{row.verdict}: {words}"), []).append(f"{row.graph} {row.dt:g}")
    return [f"{library}: {words} ({', '.join(cells)})" for (library, words), cells in sorted(where.items())]


def csv(conformance: Conformance) -> str:
    """A row for each graph, time step and library."""
    return to_csv((_fields(row) for row in conformance.rows), CSV_COLUMNS)


def to_json(conformance: Conformance) -> str:
    """The recording itself."""
    return json.dumps(conformance.as_dict(), indent=1, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Conformance], str]] = {"csv": csv, "json": to_json}


def _cells(row: Row) -> list[str]:
    compared = row.comparison
    first = compared.get("first")
    share = compared["differing"] / compared["compared"] if compared else None
    return [
        row.graph,
        f"{row.dt:g}",
        row.library,
        row.version,
        row.verdict,
        _number(compared.get("rate")),
        _number(compared.get("expected_rate")),
        "" if share is None else f"{share:.1%}",
        " ".join(map(str, first)) if first else "",
        _cause(row),
    ]


def _cause(row: Row) -> str:
    """The interpretation that explains the output, or the beginning of a reason."""
    if row.verdict == "exact":
        return ""
    if row.comparison:
        most = row.comparison["most_spikes"]
        busy = (row.comparison.get("rate") or 0.0) > BUSIEST
        unknown = "spikes in nearly every step, as in many interpretations" if busy else "unexplained"
        unknown = "no spikes, as in many interpretations" if most == 0 else unknown
        return (row.comparison["cause"] or unknown) + (f" (at most {most} here)" if (most or 0) > 1 else "")
    return str(row.outcome.reason)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _fields(row: Row) -> dict[str, Any]:
    first = row.comparison.get("first") or (None, None, None)
    own = {name: row.comparison.get(name) for name in CSV_COLUMNS if name in row.comparison}
    return own | {
        "graph": row.graph,
        "dt_s": row.dt,
        "library": row.library,
        "version": row.version,
        "verdict": row.verdict,
        "first_t": first[0],
        "first_sample": first[1],
        "first_neuron": first[2],
        "reason": row.outcome.reason,
    }
