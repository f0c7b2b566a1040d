"""Attempts: which times are measured again after a disturbance or drift of the machine, and how often.

Each attempt is a record of the same cell. All attempts are kept; reading.py chooses the one that counts.
"""

from dataclasses import dataclass

from snnbench.recording.drift import DRIFTED
from snnbench.recording.reading import Recording
from snnbench.recording.record import Record, repeated

REMEASURED_FLAGS = {"contended", DRIFTED}
"""The flags of a time that is measured again."""


def disturbed(record: Record) -> bool:
    """Whether a timed cell is contended or drifted."""
    return record.status == "measured" and record.measure == "time" and bool(REMEASURED_FLAGS & {*record.flags})


def limit(recording: Recording) -> int:
    """How often a cell of a recording may be measured again; 0 if its protocol does not say."""
    allowed = recording.protocol.get("remeasure", 0)
    return allowed if type(allowed) is int else 0


@dataclass(frozen=True, slots=True)
class Attempts:
    """By cell: the number of its `current` attempt, and that of the `next` one if it is disturbed."""

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
    """The number of cells still to be measured again."""
    allowed = limit(recording)
    return sum(attempt <= allowed for attempt in of(recording).next.values())
