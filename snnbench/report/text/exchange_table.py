"""What the libraries' own importers and exporters make of NIR graphs, in words and numbers."""

from collections.abc import Iterator, Sequence
from typing import Any

from snnbench.conformance.network import BUSIEST
from snnbench.recording.record import Record
from snnbench.report.overview import Overview
from snnbench.report.section import Section, Table

CAPTIONS = {
    "import": "Import: the network that the library's importer makes of the graph",
    "export": "Export: the library's own network of the graph's layers, held to the graph that its exporter writes",
}
COLUMNS = ("graph", "dt s", "library", "verdict", "rate", "expected", "differ", "first at")
NUMBERS = ("dt s", "rate", "expected", "differ", "first at")
LEGEND = (
    "exact: the graph by forward Euler at dt, at every position up to the rounding of float32",
    "deviates: another interpretation of the graph at every position, which the cause names; incorrect: no known one",
)
OF_NUMBERS = (
    "rate, expected: spikes per neuron and step of the library and of the graph; differ: share of the positions",
    "first at: step, sample and neuron of the first wrong output",
)


def sections(overview: Overview) -> Iterator[Section]:
    """The verdicts on the importers and exporters of a recording, and their causes."""
    if exchanges := overview.recording.exchanges:
        yield section(exchanges)


def section(exchanges: Sequence[Record]) -> Section:
    """A table of verdicts for each direction, one of the outputs that differ, and the causes."""
    tables = [verdicts(each) for measure in CAPTIONS if (each := [one for one in exchanges if one.measure == measure])]
    differing = sorted(filter(_differs, exchanges), key=lambda record: (record.library, record.measure))
    return Section(
        "exchange",
        "What the libraries' own importers and exporters make of the graphs",
        tables=[*tables, *([_differences(differing)] if differing else [])],
        closing=LEGEND + (OF_NUMBERS if differing else ()),
        remarks=_causes(exchanges),
    )


def verdicts(exchanges: Sequence[Record]) -> Table:
    """A row for each graph and time step, and a column for each library; for imports, also the graph's spikes per step.

    `exchanges` are of one measure.
    """
    by_graph: dict[tuple[str, str], dict[str, str]] = {}
    rates: dict[tuple[str, str], str] = {}
    for record in exchanges:
        graph = _graph(record)
        by_graph.setdefault(graph, {})[_library(record)] = _verdict(record)
        rates[graph] = rates.get(graph) or _number(_comparison(record).get("expected_rate"))
    libraries = sorted({name for words in by_graph.values() for name in words})
    measure = exchanges[0].measure
    rate = ["rate"] if measure == "import" else []  # each exporter writes another graph
    rows = [
        [*graph, *[rates[graph] for _ in rate], *(words.get(name, "") for name in libraries)]
        for graph, words in by_graph.items()
    ]
    return Table(("graph", "dt s", *rate, *libraries), rows, caption=CAPTIONS[measure], numbers=("dt s", "rate"))


def _differences(exchanges: Sequence[Record]) -> Table:
    """A row for each output that is not the graph's."""
    rows = []
    for record in exchanges:
        compared = _comparison(record)
        rows.append(
            [
                *_graph(record),
                f"{_library(record)}, {record.measure}",
                _verdict(record),
                _number(compared["rate"]),
                _number(compared["expected_rate"]),
                f"{compared['differing'] / compared['compared']:.1%}",
                " ".join(map(str, compared["first"])),
            ]
        )
    return Table(COLUMNS, rows, numbers=NUMBERS, leaving=("first at", "expected", "rate"))


def _causes(exchanges: Sequence[Record]) -> list[str]:
    """Every cause and every reason once, with its libraries, its graphs and their time steps."""
    graphs: dict[tuple[str, str], list[str]] = {}
    for record in exchanges:
        if words := _cause(record):
            key = f"{record.measure}: {_verdict(record)}: {words}", record.library
            graphs.setdefault(key, []).append(" ".join(_graph(record)))
    libraries: dict[tuple[str, str], list[str]] = {}
    for (words, library), places in sorted(graphs.items()):
        libraries.setdefault((words, ", ".join(sorted(places))), []).append(library)
    return sorted(f"{', '.join(each)}: {words} ({places})" for (words, places), each in libraries.items())


def _cause(record: Record) -> str:
    """The interpretation that explains an output, or the reason of an importer without one; empty if it is exact."""
    if not _differs(record):
        return record.outcome.reason or ""
    compared = _comparison(record)
    most, cause = compared["most_spikes"], compared["cause"] or record.outcome.reason or ""
    if not compared["cause"] and (most == 0 or (compared["rate"] or 0.0) > BUSIEST):
        cause = f"{'no spikes' if most == 0 else 'spikes in nearly every step'}, as in many interpretations"
    return cause + (f" (at most {most} here)" if (most or 0) > 1 else "")


def _differs(record: Record) -> bool:
    return bool(_comparison(record).get("differing"))


def _comparison(record: Record) -> dict[str, Any]:
    """The fields of conformance.comparison.Comparison; empty if nothing was compared."""
    return record.settings.get("comparison", {})  # type: ignore[no-any-return]


def _graph(record: Record) -> tuple[str, str]:
    case: Any = record.case
    return case.whole.name, f"{case.dt:g}"


def _library(record: Record) -> str:
    return f"{record.library} {record.version or ''}".strip()


def _verdict(record: Record) -> str:
    return str(record.outcome.verdict or record.outcome.kind)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
