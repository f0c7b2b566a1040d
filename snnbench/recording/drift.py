"""Drift: the cells beside which the machine was unusually slow or fast, by their probes.

A probe's level beside one cell is divided by its median over comparable cells of the same case. For the interpreter
loop, cells under the same Python are comparable; for other probes, cells of the same library with the same packages.
All cells of a case run on one machine, in trials that lie apart. If the probes of all libraries move together, the
machine moved.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp
from statistics import median
from typing import Any

from snnbench.measures.probes.levels import INTERPRETER, levels
from snnbench.recording.record import Record

DRIFTED = "drifted"
"""The flag of a cell with an unusual level."""
FACTOR = 1.25
"""A level is unusual if it is this many times slower or faster."""
FEWEST_RECORDS = 3
"""Fewest cells with the same probe that define the usual level."""


@dataclass(frozen=True, slots=True)
class Level:
    """How slow the machine was beside one cell, relative to the usual level: by probe, and the median of probes."""

    probes: dict[str, float]
    all: float

    @property
    def drifted(self) -> bool:
        """Whether the level is unusual."""
        return max(self.all, 1 / self.all) > FACTOR


def relative(records: Iterable[Record]) -> dict[tuple[str, int], Level]:
    """(cell, attempt) -> its level, if the usual level is known.

    Only first attempts define the usual level, so that measuring a cell again does not change the others.
    """
    probed = [record for record in records if record.probes]
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for record in probed:
        for name, value in levels(record.probes).items() if record.attempt == 0 else ():
            groups[_same(record, name)].append(value)
    usual = {key: median(values) for key, values in groups.items() if len(values) >= FEWEST_RECORDS}
    beside = {}
    for record in probed:
        known = {
            name: value - usual[_same(record, name)]
            for name, value in levels(record.probes).items()
            if _same(record, name) in usual
        }
        if known:
            ratios = {name: exp(value) for name, value in known.items()}
            beside[record.cell, record.attempt] = Level(ratios, exp(median(known.values())))
    return beside


def _same(record: Record, name: str) -> tuple[Any, ...]:
    """The key of comparable probes: the same work on the same machine. Shards of a run never share a case."""
    return (
        (name, record.case, record.settings.get("python"))
        if name == INTERPRETER
        else (name, record.case, record.library, record.environment)
    )
