"""Probes in a recording: their rule."""

from collections.abc import Iterator
from typing import Any

from snnbench.measures import Harness
from snnbench.measures.probes.levels import ALWAYS, LOOKS


def complaints(record: Any, schema: int) -> Iterator[str]:
    """Fixed work was timed before the phases and after them."""
    if schema < 6:
        return
    if lacking := [name for name in ALWAYS if name not in record.probes]:
        yield f"no probe {' or '.join(lacking)}"
    for name, probe in record.probes.items():
        if len(probe["looks_ns"]) != LOOKS:
            yield f"probe {name} was looked at {len(probe['looks_ns'])} times, not {LOOKS}"


HARNESS = Harness(rule="fixed work was timed before the phases of a process and after them", complaints=complaints)
