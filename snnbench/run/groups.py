"""Groups of cells: those that run together, those of a card, and those that threads share."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from snnbench.cases.case import Case
from snnbench.machine.gpus import Card
from snnbench.plan.cell import Cell


def taken(waiting: deque[Cell]) -> Iterator[Cell]:
    """The cells of a queue that other threads take cells from, too."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


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
