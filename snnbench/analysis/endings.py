"""Endings: trials of one contender in one case that end in different ways.

A library may refuse a case, or crash, in those trials that would go badly for it. Then the others are a choice.
"""

from collections import Counter
from collections.abc import Iterable

from snnbench.recording.record import Record

OF_THE_MACHINE = ("environment", "oom-device", "oom-host", "timeout", "lost", "cancelled", "unavailable")
"""Outcomes of some trials that a busy, small or broken machine explains."""
UNSUPPORTED = "unsupported"


def differing(records: Iterable[Record]) -> dict[str, int]:
    """The number of trials by how they ended, if some were measured and others not; {} if they ended alike.

    The records are of one contender in one case. Time and memory are apart, and so are the sides of an A/B test.
    """
    by_kind: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        how = record.outcome.kind or record.status
        by_kind.setdefault((record.measure, record.side), Counter())[how] += how not in OF_THE_MACHINE
    return next((dict(+each) for each in by_kind.values() if each["measured"] and len(+each) > 1), {})


def words(counts: dict[str, int]) -> str:
    """`trials end differently: 3 measured, 2 unsupported`."""
    kinds = sorted(counts, key=lambda kind: (kind != "measured", kind))
    return f"trials end differently: {', '.join(f'{counts[kind]} {kind}' for kind in kinds)}"
