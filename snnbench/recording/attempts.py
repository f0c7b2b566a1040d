"""Attempts: which times are measured again, since others disturbed them or the machine drifted, and how often.

Each attempt is a record of the same cell, and none is ever dropped. record.py says which of them counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from snnbench.recording.record import AGAIN, Record, Recording, repeated


def disturbed(record: Record) -> bool:
    """Whether others took CPUs from this cell while it was timed, or the machine was not as usual beside it."""
    return record.status == "measured" and record.measure == "time" and bool(AGAIN & {*record.flags})


def limit(config: Mapping[str, Any]) -> int:
    """How often a cell of a recording with this config.json may be measured again; 0 before there was such a key."""
    allowed = config.get("config", {}).get("protocol", {}).get("remeasure", 0)
    return allowed if type(allowed) is int else 0


@dataclass(frozen=True, slots=True)
class Attempts:
    """By cell: the `current` attempt of a cell that is to be run, and the `next` one of a cell that is disturbed."""

    current: dict[str, int]
    next: dict[str, int]


def of(recording: Recording) -> Attempts:
    """The attempts of all cells of a recording."""
    attempts = Attempts({record.cell: record.attempt for record in recording.records}, {})
    others: dict[str, list[Record]] = {}
    for record in recording.attempts:
        others.setdefault(record.cell, []).append(record)
    for record in recording.records:
        if disturbed(record):
            tried = [each.attempt for each in (record, *others.get(record.cell, [])) if not repeated(each.outcome)]
            attempts.next[record.cell] = 1 + max(tried)
    return attempts


def due(recording: Recording) -> int:
    """How many cells are still to be measured again."""
    allowed = limit(recording.config)
    return sum(attempt <= allowed for attempt in of(recording).next.values())
