"""Memory in a recording: its rule."""

from collections.abc import Iterator
from typing import Any

from snnbench import workloads
from snnbench.measures import Harness
from snnbench.measures.memory.worker import overbuilt
from snnbench.worker import floor


def complaints(record: Any, schema: int) -> Iterator[str]:
    """Memory is in whole bytes, from a process that timed nothing."""
    sizes, case = record.memory, record.case
    if record.phases:
        yield "time and memory come from one process"
    least = floor.SIZES_BYTES[case.dtype] * workloads.of(case).static_values(case)
    if sizes["static_bytes"] < least:
        yield f"static_bytes is {sizes['static_bytes']}, less than weights and input take ({least})"
    values = [value for place in ("host", "device") for value in sizes.get(place, {}).values() if value is not None]
    if not values or not all(type(value) is int and value >= 0 for value in values):
        yield "memory is not in whole bytes"
    if reason := overbuilt(sizes["static_bytes"], sizes.get("host", {}).get("build_bytes") or 0):
        yield reason


HARNESS = Harness(
    rule="memory is in whole bytes, from a process that timed nothing", cells="memory", complaints=complaints
)
