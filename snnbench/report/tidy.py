"""Tidy data: one row for each case, contender, trial, phase and metric of one or more recordings.

If a contender is incorrect in any cell of a case, it has no measurement of that case here, because its other processes
were not proved to do the work.
"""

import json
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any, get_type_hints

from snnbench import workloads
from snnbench.analysis.metrics import incorrect, metrics, pair
from snnbench.exits import UserError
from snnbench.printable import uncalculated
from snnbench.recording import schema
from snnbench.recording.reading import Recording

Row = dict[str, Any]

CASES = [workload.Case for workload in workloads.WORKLOADS.values()]
CASE_FIELDS = list(dict.fromkeys(name for case in CASES for name in case.names()))
COLUMNS = [
    "recording",
    "cell",
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
"""Columns of the table. A row without a measurement has its status, but no phase, metric or value."""

REQUIRED = ["recording", "cell", "library", "variant", "workload", "measure", "trial", "status", "flags"]
"""Columns that every row fills."""

TYPES = {
    **{
        name: hint.__name__
        for case in CASES
        for name, hint in get_type_hints(case).items()
        if name in case.names() and isinstance(hint, type)
    },
    "trial": "int",
    "value": "float",
}
"""Types of the columns that are not text."""


def rows(recordings: Iterable[Recording]) -> list[Row]:
    """All rows of all recordings."""
    return [row for recording in recordings for row in _of_recording(recording)]


def _of_recording(recording: Recording) -> Iterator[Row]:
    wrong, name = incorrect(recording.records), recording.name
    for record in recording.records:
        shared: Row = {
            "recording": name,
            "cell": record.cell,
            "library": record.library,
            "variant": record.variant,
            "side": record.side,
            "version": record.version,
            **record.case.row(),
            "measure": record.measure,
            "trial": record.trial,
            "status": record.status,
            "kind": record.outcome.kind,
            "reason": record.outcome.reason,
            "verdict": record.outcome.verdict,
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

    cells = [{name: uncalculated(value) for name, value in row.items()} for row in table]
    frame = pd.DataFrame(cells, columns=COLUMNS)
    csv: str = frame.to_csv(index=False)
    return csv


def to_json(table: list[Row]) -> str:
    """The rows as a JSON list of objects, without the columns that a row leaves empty."""
    filled = ({name: row[name] for name in COLUMNS if row.get(name) is not None} for row in table)
    return "[" + ",\n".join(json.dumps(row, allow_nan=False) for row in filled) + "]\n"


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what `to_json` writes."""
    types = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
    properties = {name: {"type": types[TYPES.get(name, "str")]} for name in COLUMNS}
    row = {"type": "object", "properties": properties, "required": REQUIRED, "additionalProperties": False}
    return {"$schema": schema.DRAFT, "title": "snnbench tidy data", "type": "array", "items": row}


def require_parquet() -> None:
    """Refuse to begin work that ends in a Parquet file, if pyarrow is missing. Raises UserError."""
    if find_spec("pyarrow") is None:
        raise UserError("Parquet needs pyarrow; get it with: pip install pyarrow")


def to_parquet(table: list[Row]) -> bytes:
    """The rows as a Parquet file; the types of its columns do not depend on the rows. Raises UserError."""
    require_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    schema = pa.schema([(name, types[TYPES.get(name, "str")]) for name in COLUMNS])
    columns = {name: [row.get(name) for row in table] for name in COLUMNS}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=schema), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
