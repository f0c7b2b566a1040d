"""The output of `operations`: a report, CSV and JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from snnbench.analysis.operation_counts import DEFINITIONS, Counts
from snnbench.cases.case import Case
from snnbench.report.section import Report, Section, Table
from snnbench.report.text.table import captions, to_csv
from snnbench.report.wording import forward_heading, title
from snnbench.units import number, quantity

Works = Sequence[tuple[Counts, Sequence[Case]]]
"""The counts of each forward pass, with the cases that have it."""

LEGEND = (
    f"as {DEFINITIONS} defines them, from the spikes of the float64 reference; operations and updates are per sample",
    "sparsity: connection sparsity of weights, activation sparsity of neurons; updates: membrane updates",
    "Eff_MACs, Eff_ACs: Dense operations with neither input nor weight 0; ACs if the input is spikes",
)
CONNECTIONS = {
    "footprint": "footprint_bytes",
    "sparsity": "connection_sparsity",
    "Dense": "dense_operations",
    "Eff_MACs": "effective_macs",
    "Eff_ACs": "effective_acs",
}
NEURONS = {
    "sparsity": "activation_sparsity",
    "updates": "membrane_updates",
    "operations": "effective_neuron_operations",
    "dense operations": "dense_neuron_operations",
    "samples": "samples",
}
"""Column of a table -> the number in it, by its name in CSV and JSON."""
VALUES = (
    *("footprint_bytes", "parameters", "connection_sparsity", "activation_sparsity", "dense_operations"),
    *("effective_macs", "effective_acs", "membrane_updates", "effective_neuron_operations", "dense_neuron_operations"),
)
"""The numbers of a case in CSV and JSON."""
CSV_COLUMNS = ("case", "title", *VALUES, "samples", "reason")


def report(works: Works) -> Report:
    """Tables of connections and neurons, a row for each work, and why numbers are missing or of a part of the batch."""
    common, own = captions((counts.case for counts, _ in works), forward_heading)
    tables = [
        Table(("work", *columns), [_row(counts, own[counts.case], columns) for counts, _ in works], caption=heading)
        for heading, columns in (("connections", CONNECTIONS), ("neurons", NEURONS))
    ]
    reasons = [f"{own[counts.case] or 'all cases'}: {counts.reason}" for counts, _ in works if counts.reason]
    shown = Section("operations", "", tables=tables, closing=LEGEND, remarks=reasons)
    return Report(notes=[f"all cases: {common}"], sections=[shown])


def csv(works: Works) -> str:
    """A row for each case; an empty field is a number without a definition, or one that was not computed."""
    rows = [
        {"case": case.key, "title": title(case)} | _values(counts) | {"reason": counts.reason}
        for counts, cases in works
        for case in cases
    ]
    return to_csv(rows, CSV_COLUMNS)


def to_json(works: Works) -> str:
    """An entry for each case, with the activation sparsity of each layer."""
    entries = [
        {"case": {"key": case.key} | case.as_dict()}
        | _values(counts)
        | {"activation_sparsity_by_layer": dict(counts.traced.activation_sparsity_by_layer) if counts.traced else {}}
        | {"reason": counts.reason}
        for counts, cases in works
        for case in cases
    ]
    return json.dumps({"definitions": DEFINITIONS, "cases": entries}, indent=1, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Works], str]] = {"csv": csv, "json": to_json}


def amount(count: float | None) -> str:
    """A count with three digits: `6.55 M`; `-` for None."""
    if count is None:
        return "-"
    size, letter = next(
        ((size, letter) for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")) if count >= size), (1, "")
    )
    return f"{number(count / size)}{letter}"


def _row(counts: Counts, name: str, columns: Mapping[str, str]) -> Sequence[str]:
    values = _values(counts)
    return name or "all", *(_cell(key, values[key], counts.case) for key in columns.values())


def _cell(key: str, value: Any, case: Case) -> str:
    if key == "samples":
        return f"{value} of {case.batch}"
    if key == "footprint_bytes":
        return quantity(value, "bytes")
    if key.endswith("sparsity") and value is not None:
        return f"{value:.4f}"
    return amount(value)


def _values(counts: Counts) -> dict[str, Any]:
    known: Mapping[str, Any] = asdict(counts) | (asdict(counts.traced) if counts.traced else {})
    return {name: known.get(name) for name in VALUES} | {"samples": counts.traced.samples if counts.traced else 0}
