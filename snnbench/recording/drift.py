"""Drift: where in a run the machine was slower or faster than it usually was, by the probes beside each cell.

A probe's level beside one cell is divided by its median over the cells of the same case with the same probe: of the
loop, those under the same Python; of the others, those of the same library with the same packages. All cells of a case
run on one machine, in trials that lie apart. What moves the probes of all libraries together is the machine.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp
from statistics import median
from typing import Any, Protocol

from snnbench.worker.probe import INTERPRETER, levels
from snnbench.workloads.case import Case

DRIFTED = "drifted"
"""The flag of a cell beside which the machine was not as usual."""
FACTOR = 1.25
"""So many times as slow as usual, or as fast, is not as usual. One quiet run had levels from 0.80 to 1.16."""
FEWEST = 3
"""Fewer cells with the same probe do not say what is usual."""


class Probed(Protocol):
    """What is read of a record."""

    @property
    def cell(self) -> str:
        """The name of its cell."""

    @property
    def attempt(self) -> int:
        """How often the cell was measured before."""

    @property
    def library(self) -> str:
        """The adapter's name."""

    @property
    def environment(self) -> str:
        """The key of its packages."""

    @property
    def case(self) -> Case:
        """The work that it did."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """What its process ran on."""

    @property
    def probes(self) -> Mapping[str, Any]:
        """Raw durations by probe."""


@dataclass(frozen=True, slots=True)
class Level:
    """How slow the machine was beside one cell, over what is usual: by probe, and the median of these."""

    probes: dict[str, float]
    all: float

    @property
    def drifted(self) -> bool:
        """Whether that is not as usual."""
        return max(self.all, 1 / self.all) > FACTOR


def relative(records: Iterable[Probed]) -> dict[tuple[str, int], Level]:
    """The level beside each cell and attempt, where it is known what is usual.

    The first attempts say what is usual, so that measuring some cells again changes nothing for the others.
    """
    probed = [record for record in records if record.probes]
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for record in probed:
        for name, value in levels(record.probes).items() if record.attempt == 0 else ():
            groups[_same(record, name)].append(value)
    usual = {key: median(values) for key, values in groups.items() if len(values) >= FEWEST}
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


def _same(record: Probed, name: str) -> tuple[Any, ...]:
    """What is alike where a probe is the same work on the same machine: shards of a run never share a case."""
    return (
        (name, record.case, record.settings.get("python"))
        if name == INTERPRETER
        else (name, record.case, record.library, record.environment)
    )
