"""The rule of files: every line is a record of one schema, and the run is finished, or closed with a reason.

A cell is there once. If it was disturbed, it may have several attempts, each once.

A line states its own schema, and older schemas have fewer rules. So a line must not hold fields newer than its schema.
"""

import json
import shlex
from collections.abc import Iterator
from typing import Any

from snnbench import workloads
from snnbench.recording import attempts, reading
from snnbench.recording import record as records
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record
from snnbench.recording.schema import FLOOR

Line = dict[str, Any]


def complaints(recording: Recording, lines: list[Line]) -> Iterator[tuple[str, str]]:
    """(file, complaint) for every violation in a recording with these lines."""
    if recording.torn:
        yield reading.RECORDS, f"{recording.torn} lines are no records"
    if not recording.records:
        yield reading.RECORDS, "no cell is recorded"
    if not recording.finished and not recording.closed:
        close = f"`snnbench close {shlex.quote(str(recording.folder))} --reason TEXT`"
        yield reading.CONFIG, f"the run is not finished; the same command continues it, and {close} ends it"
    if recording.finished and recording.closed:
        yield reading.CONFIG, "the run is both finished and closed"
    if recording.closed and recording.planned is None:
        yield reading.CONFIG, "the run is closed, and how many cells were planned is not known"
    earlier: dict[tuple[str, int], Any] = {}
    for line in lines:
        attempt = line["cell"], line.get("attempt", 0)
        if earlier.get(attempt, {}).get("status") == "measured":
            yield reading.RECORDS, f"cell {line['cell']} is there more than once; the last counts"
        earlier[attempt] = line.get("outcome", {})
    yield from ((reading.RECORDS, complaint) for complaint in _attempts(recording))
    for record in recording.disproved:
        yield reading.RECORDS, f"cell {record.cell} was {record.outcome.kind} before it was measured"
    if len(schemas := sorted({line["schema"] for line in lines})) > 1:
        yield reading.RECORDS, f"lines of the schemas {', '.join(map(str, schemas))}; a recording has one"
    if schemas and schemas[0] < 3 and any("input_kind" in sweep for sweep in recording.resolved.get("sweep", [])):
        yield reading.CONFIG, f"input_kind, which there was not yet in schema {schemas[0]}"
    for line in lines:
        if newer := list(dict.fromkeys(_newer(line))):
            text = f"cell {line['cell']} is of schema {line['schema']}, which did not have {', '.join(newer)}"
            yield reading.RECORDS, text


def _attempts(recording: Recording) -> Iterator[str]:
    """Complaints about cells that were measured again."""
    allowed = attempts.limit(recording)
    by_cell: dict[str, list[Record]] = {}
    for record in [*recording.records, *recording.attempts]:
        by_cell.setdefault(record.cell, []).append(record)
    for cell, tried in by_cell.items():
        tried.sort(key=lambda record: record.attempt)
        numbers = [record.attempt for record in tried]
        if numbers != list(range(len(tried))):
            yield f"cell {cell} has the attempts {', '.join(map(str, numbers))}, and should have all from 0 on"
        if numbers[-1] > allowed:
            yield f"cell {cell} was measured again {numbers[-1]} times, where the protocol allows {allowed}"
        if any(record.status == "measured" and not attempts.disturbed(record) for record in tried[:-1]):
            yield f"cell {cell} was measured again, though an earlier attempt was not disturbed"


def lines(recording: Recording) -> list[Line]:
    """The lines that are records, as plain documents."""
    text = (recording.folder / reading.RECORDS).read_text(encoding="utf-8", errors="replace")
    return [json.loads(line) for line in text.split("\n") if records.parse(line, recording.folder)]


def _newer(line: Line) -> Iterator[str]:
    """Names of a line's fields that are newer than its schema."""
    if line["schema"] < 2:
        yield from ["peaks"] if "peaks" in line else []
        for timing in line.get("phases", {}).values():
            yield from sorted(FLOOR & timing.keys())
    if line["schema"] < 3:
        yield from (name for name in ("own_rule", "inference_only") if name in line["outcome"])
        yield from (name for name in line.get("checks", {}) if name.startswith("common-"))
        yield from ["input_kind"] if "input_kind" in line["case"] else []
    if line["schema"] < 4:
        yield from (name for name in line.get("checks", {}) if name.startswith("fresh-"))
        for timing in line.get("phases", {}).values():
            yield from sorted({"fresh_ns", "drawn_ns", "repeated_ns"} & timing.keys())
        yield from ["attempt"] if "attempt" in line else []
    if line["schema"] < 5:
        yield from ["side"] if line.get("side") else []
    if line["schema"] < 7:
        yield from ["workload"] if line["case"].get("workload", workloads.DEFAULT) != workloads.DEFAULT else []
    if line["schema"] < 8:
        for timing in line.get("phases", {}).values():
            yield from (
                name for name in ("contested_ns", "contested_passes", "build_ns", "enough_ns") if name in timing
            )
            yield from ["timed_cpus"] if "timed_cpus" in timing.get("contention", {}) else []
        memory = line.get("memory") or {}
        yield from ["passes_ns"] if "passes_ns" in memory else []
        yield from ["build_bytes"] if "build_bytes" in (memory.get("host") or {}) else []
    if line["schema"] < 6:
        yield from ["probes"] if line.get("probes") else []
        yield from ("instructions" for timing in line.get("phases", {}).values() if "instructions" in timing)
