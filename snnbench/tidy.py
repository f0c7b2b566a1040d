"""Tidy data: one row for each case, contender, trial, phase and metric of one or more recordings.

A contender that was found incorrect in any cell of a case has no measurement of that case here: whatever its other
processes measured was not proved to be the work.
"""

from collections.abc import Iterable, Iterator
from typing import Any, get_type_hints

from snnbench.adapter import label
from snnbench.case import Case
from snnbench.record import Record, Recording
from snnbench.statistics import trial_median

Row = dict[str, Any]

CASE_FIELDS = [name for name in Case.__dataclass_fields__ if name != "workload"]
COLUMNS = [
    "recording",
    "library",
    "variant",
    "side",
    "version",
    *CASE_FIELDS,
    "measure",
    "trial",
    "status",
    "kind",
    "reason",
    "verdict",
    "flags",
    "phase",
    "metric",
    "unit",
    "value",
]
"""Columns of the table; a row of a cell that was not measured has its status, and no phase, metric or value."""

TYPES = {
    **{
        name: get_type_hints(Case)[name].__name__
        for name in CASE_FIELDS
        if isinstance(get_type_hints(Case)[name], type)
    },
    "trial": "int",
    "value": "float",
}
"""Types of the columns that are not text."""


def rows(recordings: Iterable[Recording]) -> list[Row]:
    """All rows of all recordings."""
    return [row for recording in recordings for row in _of_recording(recording)]


def contender(record: Record) -> str:
    """`library` or `library/variant`, and the side where two took turns."""
    name = label(record.library, record.variant)
    return f"{name} ({record.side})" if record.side else name


def incorrect(records: Iterable[Record]) -> set[tuple[Any, ...]]:
    """(case, contender) pairs of which a cell was found incorrect."""
    return {pair(record) for record in records if record.outcome.get("kind") == "incorrect"}


def common(record: Record) -> list[dict[str, Any]]:
    """Of a contender that deviates: how its answers compared with the case's own neuron, in networks of one layer."""
    return [check for name, check in record.checks.items() if name.startswith("common-") and check["compared"]]


def pair(record: Record) -> tuple[Any, ...]:
    """What identifies case and contender within a recording."""
    return Case(**record.case), contender(record)


def metrics(record: Record) -> Iterator[tuple[str, str, str, float]]:
    """(phase, metric, unit, value) of one measured record."""
    for phase, timing in record.phases.items():
        yield phase, "time", "ns", trial_median(timing["repetitions_ns"], timing["passes"])
        if timing.get("device_ns"):
            yield phase, "device_time", "ns", trial_median(timing["device_ns"], timing["passes"])
        if "floor_ns" in timing:  # not in recordings of schema 1
            yield phase, "floor", "ns", timing["floor_ns"]
            yield phase, "times_floor", "ratio", timing["times_floor"]
        if timing.get("instructions"):
            yield phase, "instructions", "count", trial_median(timing["instructions"], timing["passes"])
        yield phase, "first_call", "ns", timing["first_call_ns"]
    if record.memory:
        phase = record.memory["phase"]
        yield phase, "static", "bytes", record.memory["static_bytes"]
        for place in ("host", "device"):
            for name, value in record.memory.get(place, {}).items():
                if value is not None:
                    yield phase, f"{place}_{name.removesuffix('_bytes')}", "bytes", value


def _of_recording(recording: Recording) -> Iterator[Row]:
    wrong = incorrect(recording.records)
    for record in recording.records:
        shared: Row = {
            "recording": recording.name,
            "library": record.library,
            "variant": record.variant,
            "side": record.side,
            "version": record.version,
            **{name: record.case[name] for name in CASE_FIELDS},
            "measure": record.measure,
            "trial": record.trial,
            "status": record.status,
            "kind": record.outcome.get("kind"),
            "reason": record.outcome.get("reason"),
            "verdict": record.outcome.get("verdict"),
            "flags": " ".join(record.flags),
        }
        measured = [] if pair(record) in wrong else list(metrics(record))
        for phase, metric, unit, value in measured:
            yield {**shared, "phase": phase, "metric": metric, "unit": unit, "value": value}
        if not measured:
            yield shared


def to_csv(table: list[Row]) -> str:
    """The rows as CSV, one header line first."""
    import pandas as pd

    frame = pd.DataFrame(table, columns=COLUMNS)
    csv: str = frame.to_csv(index=False)
    return csv


def to_parquet(table: list[Row]) -> bytes:
    """The rows as a Parquet file, whose columns have the same types whatever the rows are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    schema = pa.schema([(name, types[TYPES.get(name, "str")]) for name in COLUMNS])
    columns = {name: [row.get(name) for row in table] for name in COLUMNS}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=schema), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
