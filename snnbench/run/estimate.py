"""How long the cells that are left will take, from those that have ended.

A cell takes what the same contender took for the same work in an earlier trial; before there is one, what the contender
took a unit of work, or else what all took. Most of a short cell is the start of its process, and a long one grows with
its neuron updates: an unknown cell is thought to cost in proportion to their square root, which lies between the two.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from snnbench.plan.cell import Cell

Kind = tuple[Any, ...]


@dataclass(slots=True)
class Total:
    """Of cells that ended."""

    seconds: float = 0.0
    work: float = 0.0

    def add(self, seconds: float, work: float) -> None:
        """One more."""
        self.seconds += seconds
        self.work += work


class Estimate:
    """Learns how long cells take, and takes those that ended off what is left; seconds everywhere."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._left: dict[Kind, int] = defaultdict(int)
        self._cells: dict[Kind, Cell] = {}
        self._totals: dict[Kind, Total] = defaultdict(Total)
        self.add(cells)

    def add(self, cells: Iterable[Cell]) -> None:
        """More cells are left."""
        for cell in cells:
            self._left[_same(cell)] += 1
            self._cells.setdefault(_same(cell), cell)

    def learn(self, cell: Cell, seconds: float) -> None:
        """How long a cell took."""
        self._left[_same(cell)] -= 1
        for kind in _kinds(cell):
            self._totals[kind].add(seconds, _work(cell))

    def seconds_left(self) -> float | None:
        """How long what is left will take; None as long as nothing is known."""
        each = [(count, self._seconds(self._cells[kind])) for kind, count in self._left.items() if count > 0]
        return None if any(seconds is None for _, seconds in each) else sum(n * s for n, s in each if s is not None)

    def _seconds(self, cell: Cell) -> float | None:
        known: Mapping[Kind, Total] = self._totals
        total = next((known[kind] for kind in _kinds(cell) if kind in known), None)
        return total.seconds / total.work * _work(cell) if total else None


def format_duration(seconds: float) -> str:
    """A duration as one says it: 40 s, 3 min, 2 h 10 min."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _same(cell: Cell) -> Kind:
    """What its other trials share with it."""
    return cell.contender, cell.case, cell.measure


def _kinds(cell: Cell) -> list[Kind]:
    """What it is one of, from what says most of it to what says least."""
    return [_same(cell), (cell.contender, cell.measure), (cell.measure,), ()]


def _work(cell: Cell) -> float:
    return math.sqrt(max(1, cell.case.updates))
