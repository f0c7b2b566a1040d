"""The floor of a case: one for all contenders, though each process measures a floor of its own.

A process measures its peaks in the contender's framework, so the contender could make them look faster or slower. So
the floor of a case is the median over its contenders, and one that lies cannot move it far. Other load makes peaks
slower, never faster, so each contender counts with the lowest floor of its processes.
"""

from collections.abc import Iterable, Iterator
from statistics import median, median_high

from snnbench.cases.case import Case
from snnbench.recording.record import Record
from snnbench.units import MS
from snnbench.worker.durations import median_ns
from snnbench.worker.floor import LARGEST_SPREAD

FAR_BELOW = 0.25
"""A floor below this share of the case's floor is not used. Other load has made a floor 2.5 times as high."""


def of_case(records: Iterable[Record]) -> dict[str, float]:
    """The floor of each phase of one case [ns], without the floors that are far below the others."""
    return {phase: _trusted([*by_label.values()]) for phase, by_label in _lowest(records).items()}


def _lowest(records: Iterable[Record]) -> dict[str, dict[str, float]]:
    """The lowest floor of each contender in each phase [ns], by phase and label."""
    lowest_ns: dict[str, dict[str, float]] = {}
    for record in records:
        for phase, timing in record.phases.items():
            if "floor_ns" in timing:  # not in recordings of schema 1
                of_phase, floor_ns = lowest_ns.setdefault(phase, {}), timing["floor_ns"]
                of_phase[record.label] = min(floor_ns, of_phase.get(record.label, floor_ns))
    return lowest_ns


def _trusted(floors_ns: list[float]) -> float:
    usual = median_high(floors_ns)  # of one liar and one honest contender, the honest one's
    return median(each for each in floors_ns if each >= FAR_BELOW * usual)


def is_below(time_ns: float, floor_ns: float) -> bool:
    """Whether a time is so far below the floor of its case that no spread between processes explains it."""
    return time_ns < floor_ns * (1 - LARGEST_SPREAD)


def complaints(records: Iterable[Record]) -> Iterator[tuple[Record, str]]:
    """(record, complaint) for each floor far below the other contenders', and each time far below the case's floor."""
    by_case: dict[Case, list[Record]] = {}
    for record in records:
        by_case.setdefault(record.case, []).append(record)
    for group in by_case.values():
        floors_ns = of_case(group)
        for record in group:
            for phase in record.phases.keys() & floors_ns.keys():
                timing, floor_ns = record.phases[phase], floors_ns[phase]
                usual = f"the case's floor of {floor_ns / MS:.3g} ms"
                if timing.get("floor_ns", floor_ns) < FAR_BELOW * floor_ns:
                    yield record, f"{phase}: its floor of {timing['floor_ns'] / MS:.3g} ms is far below {usual}"
                if is_below(time_ns := median_ns(timing), floor_ns):
                    yield record, f"{phase}: its time of {time_ns / MS:.3g} ms is far below {usual}"
