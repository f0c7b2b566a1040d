"""The floor of a case: one for all contenders, though each process measures a floor of its own.

A process measures its peaks in the contender's framework, so the contender could make them look faster or slower. So
the floor of a case is the median over all processes that timed it, and a contender that lies cannot move it far.
"""

from collections.abc import Iterable, Iterator
from statistics import median, median_high

from snnbench.cases.case import Case
from snnbench.recording.record import Record
from snnbench.units import MS
from snnbench.worker.durations import median_ns
from snnbench.worker.floor import LARGEST_SPREAD

FAR_BELOW = 0.5
"""A floor below this share of the case's floor is not used: chance never halves a time."""


def of_case(records: Iterable[Record]) -> dict[str, float]:
    """The floor of each phase of one case [ns], without the floors that are far below the others."""
    found: dict[str, list[float]] = {}
    for record in records:
        for phase, timing in record.phases.items():
            if "floor_ns" in timing:  # not in recordings of schema 1
                found.setdefault(phase, []).append(timing["floor_ns"])
    return {phase: _trusted(each) for phase, each in found.items()}


def _trusted(floors_ns: list[float]) -> float:
    usual = median_high(floors_ns)  # of one liar and one honest process, the honest one's
    return median(each for each in floors_ns if each >= FAR_BELOW * usual)


def is_below(time_ns: float, floor_ns: float) -> bool:
    """Whether a time is so far below the floor of its case that no spread between processes explains it."""
    return time_ns < floor_ns * (1 - LARGEST_SPREAD)


def complaints(records: Iterable[Record]) -> Iterator[tuple[Record, str]]:
    """(record, complaint) for each floor far below the other processes' floors, and each time far below the case's."""
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
