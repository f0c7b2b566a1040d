"""Groups of cells: those that run together, those of a card, and those that share a process."""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from threading import Lock

from snnbench.cases.case import Case
from snnbench.machine.gpus import Card
from snnbench.plan.cell import Cell


class Sharing:
    """Cells to verify, which threads take group by group: the cells of a group share a process.

    Groups that are `late` come last. A thread without a group begins one that no other thread works on, the largest
    first, and at the end helps with another thread's group.
    """

    def __init__(
        self, cells: Iterable[Cell], group_of: Callable[[Cell], Hashable], is_late: Callable[[Cell], bool]
    ) -> None:
        self._groups: dict[tuple[bool, Hashable], deque[Cell]] = defaultdict(deque)
        for cell in cells:
            self._groups[is_late(cell), group_of(cell)].append(cell)
        self._taken: set[tuple[bool, Hashable]] = set()
        self._lock = Lock()

    def cells(self) -> Iterator[Cell]:
        """The cells for one thread."""
        own: tuple[bool, Hashable] = (False, None)
        while True:
            with self._lock:
                if own not in self._groups:
                    if not self._groups:
                        return
                    own = min(self._groups, key=self._rank)
                    self._taken.add(own)
                cell = self._groups[own].popleft()
                if not self._groups[own]:
                    del self._groups[own]
            yield cell

    def _rank(self, group: tuple[bool, Hashable]) -> tuple[bool, bool, int]:
        is_late, _ = group
        return is_late, group in self._taken, -len(self._groups[group])


def together(cells: Iterable[Cell]) -> Iterator[list[Cell]]:
    """Groups of cells to run together: single cells, or the two adjacent sides of a timed pair, which take turns."""
    waiting: list[Cell] = []
    for cell in cells:
        if waiting and replace(cell, side=waiting[0].side) == waiting[0] and cell.side != waiting[0].side:
            yield [*waiting, cell]
            waiting = []
            continue
        if waiting:
            yield waiting
        waiting = [cell]
        if not cell.side or cell.measure != "time":
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def deal(cells: Iterable[Cell], cards: Sequence[Card]) -> dict[Card, list[Cell]]:
    """Cases dealt out to cards in turn, all cells of a case to one card. Cards without cells are left out."""
    turns: dict[Case, Card] = {}
    dealt: dict[Card, list[Cell]] = {}
    for cell in cells if cards else ():
        card = turns.setdefault(cell.case, cards[len(turns) % len(cards)])
        dealt.setdefault(card, []).append(cell)
    return dealt
