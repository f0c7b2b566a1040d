"""Energy in a recording: what a counter added up around passes, less the idle power before them."""

from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import TypedDict

from snnbench.measures import Harness, Metric, Ranked
from snnbench.measures.energy.worker import LEAST_NS
from snnbench.measures.fields import Count, Elapsed, Name, Size


class EnergyDocument(TypedDict):
    """A counter of energy around some passes, and around idle time before them."""

    counter: Name
    passes: Size
    wall_ns: Elapsed
    counted_uj: Count
    idle_ns: Elapsed
    idle_uj: Count


def complaints(record: Any, schema: int) -> Iterator[str]:
    """Energy was counted over a second of passes and more, after some idle time."""
    for phase, timing in record.phases.items():
        if (measured := timing.get("energy")) and measured["wall_ns"] < LEAST_NS:
            yield f"{phase}: energy of {measured['wall_ns'] / 1e9:.3g} s, where it takes {LEAST_NS / 1e9:g} s"


def metrics(timing: Mapping[str, Any]) -> Iterator[Metric]:
    """The energy of a pass beyond idle power, and the idle power."""
    if measured := timing.get("energy"):
        yield "energy", "joules", net_joules(measured)
        yield "idle_power", "watts", idle_watts(measured)


def idle_watts(energy: Mapping[str, Any]) -> float:
    """The power before a measurement of energy, as a record holds it."""
    return float(energy["idle_uj"] / energy["idle_ns"] * 1e3)


def net_joules(energy: Mapping[str, Any]) -> float:
    """The energy of a pass beyond idle power. Noise may put the energy of a small pass below 0."""
    idle_uj = idle_watts(energy) * energy["wall_ns"] / 1e3
    return float((energy["counted_uj"] - idle_uj) / energy["passes"] / 1e6)


HARNESS = Harness(
    is_asked_for=True,
    of_phase={"energy": EnergyDocument},
    rule="energy was counted over at least a second of passes",
    complaints=complaints,
    metrics=metrics,
    ranked=Ranked("joules", "energies", "more", "less"),
)
