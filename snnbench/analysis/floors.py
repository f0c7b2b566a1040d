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
from snnbench.worker import floor
from snnbench.worker.durations import median_ns
from snnbench.worker.floor import LARGEST_SPREAD

FAR_BELOW = 0.25
"""A floor below this share of the case's floor is not used. Other load has made a floor 2.5 times as high."""


def of_case(records: Iterable[Record]) -> dict[str, float]:
    """The floor of each phase of one case [ns], without the floors that are far below the others."""
    return {phase: _trusted([*by_label.values()]) for phase, by_label in _lowest(records).items()}


def bound_of_case(records: Iterable[Record]) -> dict[str, float]:
    """What no time of a phase can be below [ns]: the floor, less what the zeros of the input and of spikes spare."""
    given = list(records)
    return {phase: floor_ns * _share(given, phase) for phase, floor_ns in of_case(given).items()}


def _share(records: list[Record], phase: str) -> float:
    """The bound of a phase over its floor, by the peaks of the median contender."""
    shares = []
    for record in records:
        if phase not in record.phases or not set(floor.needed(record.case, [phase])) <= record.peaks.keys():
            continue
        peaks = {name: floor.Peak(**peak) for name, peak in record.peaks.items()}
        given = record.case, phase, peaks
        shares.append(floor.bound_ns(*given, floor.rates_of(record.checks)) / floor.floor_ns(*given))
    return median(shares) if shares else 1.0


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
    """Whether a time is so far below this bound of its case that no spread between processes explains it."""
    return time_ns < floor_ns * (1 - LARGEST_SPREAD)


def complaints(records: Iterable[Record]) -> Iterator[tuple[Record, str]]:
    """(record, complaint) for each floor far below the other contenders', and each time far below the case's floor."""
    by_case: dict[Case, list[Record]] = {}
    for record in records:
        by_case.setdefault(record.case, []).append(record)
    for group in by_case.values():
        floors_ns, bounds_ns = of_case(group), bound_of_case(group)
        for record in group:
            for phase in record.phases.keys() & floors_ns.keys():
                timing, floor_ns = record.phases[phase], floors_ns[phase]
                usual = f"the case's floor of {floor_ns / MS:.3g} ms"
                if timing.get("floor_ns", floor_ns) < FAR_BELOW * floor_ns:
                    yield record, f"{phase}: its floor of {timing['floor_ns'] / MS:.3g} ms is far below {usual}"
                if is_below(time_ns := median_ns(timing), bounds_ns[phase]):
                    yield record, f"{phase}: its time of {time_ns / MS:.3g} ms is far below {usual}"
