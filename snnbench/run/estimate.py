"""An estimate of the time left, from the cells that have ended.

A cell is expected to take as long as earlier trials of the same work. Before the first such trial, the estimate is the
contender's time per unit of work, or else that of all contenders. A short cell mostly starts its process; a long cell
grows with its neuron updates. So the unit of work is the square root of the neuron updates, between the two. To verify
a cell takes about as long at all sizes, but far longer if something compiles: `effort` is how many times as long.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from snnbench.plan.cell import Cell

Kind = tuple[Any, ...]
Effort = Callable[[Cell], float]
"""How many times as long it takes to verify a cell as one for which nothing compiles."""


def alike(cell: Cell) -> float:
    """The effort of cells that take equally long."""
    return 1


@dataclass(slots=True)
class Total:
    """Total time and work of cells that ended."""

    seconds: float = 0.0
    work: float = 0.0

    def add(self, seconds: float, work: float) -> None:
        """Add one cell."""
        self.seconds += seconds
        self.work += work


class Estimate:
    """Estimates the time left from the cells that ended; all times are in seconds."""

    def __init__(self, cells: Iterable[Cell], effort: Effort = alike) -> None:
        self._effort = effort
        self._left: dict[Kind, int] = defaultdict(int)
        self._cells: dict[Kind, Cell] = {}
        self._totals: dict[Kind, Total] = defaultdict(Total)
        self.add(cells)

    def add(self, cells: Iterable[Cell]) -> None:
        """Add cells that are left."""
        for cell in cells:
            self._left[_same(cell)] += 1
            self._cells.setdefault(_same(cell), cell)

    def learn(self, cell: Cell, seconds: float) -> None:
        """Learn how long a cell took."""
        self._left[_same(cell)] -= 1
        for kind in self._kinds(cell):
            self._totals[kind].add(seconds, self._work(cell))

    def seconds_left(self) -> float | None:
        """How long the cells left will take; None as long as it is unknown."""
        each = [(count, self.seconds(self._cells[kind])) for kind, count in self._left.items() if count > 0]
        return None if any(seconds is None for _, seconds in each) else sum(n * s for n, s in each if s is not None)

    def seconds(self, cell: Cell) -> float | None:
        """How long a cell will take; None if it is unknown."""
        known: Mapping[Kind, Total] = self._totals
        total = next((known[kind] for kind in self._kinds(cell) if kind in known), None)
        return total.seconds / total.work * self._work(cell) if total else None

    def _kinds(self, cell: Cell) -> list[Kind]:
        """Groups this cell belongs to, most specific first."""
        return [_same(cell), (cell.contender, cell.measure), (cell.measure, self._effort(cell)), (cell.measure,), ()]

    def _work(self, cell: Cell) -> float:
        if cell.measure == "verify":
            return self._effort(cell)
        return math.sqrt(max(1, cell.case.updates))


def format_duration(seconds: float) -> str:
    """A duration as text: 40 s, 3 min, 2 h 10 min."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _same(cell: Cell) -> Kind:
    """The key that all trials of a cell share."""
    return cell.contender, cell.case, cell.measure
