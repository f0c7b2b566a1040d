"""The local executor: it turns every planned cell into a record, one at a time on the CPU, side by side on cards.

Cases are dealt out to the cards. All cells of a case run on one card, so that contenders are compared on the same card.
Cells on the CPU come first, and have the machine for themselves.
"""

import os
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Protocol as Interface

from snnbench.cases.case import Case
from snnbench.cases.outcome import failed
from snnbench.machine import cpus
from snnbench.machine.gpus import Card
from snnbench.plan.cell import Cell
from snnbench.recording import in_progress
from snnbench.recording.record import Record, RecordingError
from snnbench.recording.writer import Writer
from snnbench.run import known_outcomes
from snnbench.run.endings import record_of
from snnbench.run.process import Stopped, stopping
from snnbench.run.runner import Task, known_outcome, measure_in_relay, measure_together
from snnbench.run.setup import Run
from snnbench.worker import floor
from snnbench.worker.messages import Note

NOT_RECORDED = failed("lost", "the run ended before this cell was recorded")
"""The provisional outcome of a running cell."""
RELAYED_TIMES = 64
"""The least bytes of a cell must fit into the memory so often, or no other worker waits meanwhile: a library may need
many times the least bytes, and the other worker's library takes some, too."""


class Progress(Interface):
    """A listener to the progress of a run."""

    def start(self, cell: Cell) -> None:
        """A cell is about to run."""

    def note(self, cell: Cell, note: Note) -> None:
        """A running cell's worker does long work that is not timed."""

    def end(self, cell: Cell, record: Record) -> None:
        """A cell has become a record."""

    def add(self, cells: Sequence[Cell]) -> None:
        """These cells will be measured again."""


class Executor:
    """One run over its plan; several threads may share it, each with a card."""

    def __init__(self, run: Run, writer: Writer, progress: Progress, retry: Collection[str] = ()) -> None:
        self.run, self.progress = run, progress
        self._writer, self._done, self._attempts = writer, writer.done(retry), writer.attempts()
        in_progress.clear(writer.folder)
        self._known, self._lock = known_outcomes.KnownOutcomes(), Lock()
        self._ended, self._silent = 0, False
        self._running: set[str] = set()

    def execute(self, plan: Sequence[Cell], cards: Sequence[Card] = ()) -> None:
        """Run the missing cells of `plan`, then measure disturbed cells again.

        Rounds repeat as often as the protocol allows. An interrupt records the cells that it stopped as cancelled.
        """
        self._run(plan, cards)
        while again := self._disturbed(plan):
            self.run.say(f"{len(again)} of {len(plan)} cells were disturbed, and are measured again")
            for key in again:
                self._done.pop(key)
                self._attempts.current[key] = self._attempts.next[key]
            self.progress.add(list(again.values()))
            self._run(plan, cards)  # the whole plan, so that each case keeps its card

    def _disturbed(self, plan: Sequence[Cell]) -> dict[str, Cell]:
        """The cells to be measured once more, in the order of the plan. Only the whole recording shows them."""
        self._attempts = self._writer.attempts()
        due = {key for key, attempt in self._attempts.next.items() if attempt <= self.run.protocol.remeasure}
        return {key: cell for cell in plan if (key := self.run.key(cell)) in due} if due else {}

    def _run(self, plan: Sequence[Cell], cards: Sequence[Card]) -> None:
        on_cards = [cell for cell in plan if cell.case.device.startswith("cuda") and cell.case.processes == 1]
        # A cell on several cards sees all of them, and holds the CPUs, which every cell on a card shares.
        self._in_turn([cell for cell in plan if cell not in set(on_cards)], None)
        dealt = deal(on_cards, self._with_cpus(on_cards, cards))
        if len(dealt) <= 1:
            self._in_turn(on_cards, cards[0] if cards else None)
        else:
            self._side_by_side(dealt)

    def _with_cpus(self, cells: Sequence[Cell], cards: Sequence[Card]) -> Sequence[Card]:
        """As many cards as can have CPUs of their own: a neighbour must not slow down the host side of a cell."""
        widest = max((cell.case.threads for cell in cells), default=1)
        most = max(1, cpus.usable_cpus() // widest)
        if most < len(cards):
            self.run.say(f"{most} of {len(cards)} cards: a cell takes {widest} CPUs of its own (case.threads)")
        return cards[:most]

    def _in_turn(self, cells: Iterable[Cell], card: Card | None, stop: int | None = None, lane: int = 0) -> None:
        early: list[Task] = []  # a single cell on the CPU, which may have another one after it
        for group in together(cells):
            left = self._left(group)
            single = len(left) == 1 and card is None and self._can_be_relayed(left[0].cell)
            if early and single:
                self._measure([*early, *left], measure_in_relay([*early, *left], self.run, self._known, stop))
                early = []
            elif single:
                early = left
            elif left:
                for tasks in filter(None, (early, left)):
                    self._measure(tasks, measure_together(tasks, self.run, self._known, card, stop, lane))
                early = []
        if early:
            self._measure(early, measure_together(early, self.run, self._known, card, stop, lane))

    def _can_be_relayed(self, cell: Cell) -> bool:
        """Whether the cell needs a worker, and this one no other processes and no large part of the memory."""
        is_small = floor.least_bytes(cell.case, "train") * RELAYED_TIMES <= self.run.memory_bytes
        return cell.case.processes == 1 and is_small and known_outcome(cell, self.run, self._known) is None

    def _left(self, group: Iterable[Cell]) -> list[Task]:
        """The cells of a group that have no outcome yet."""
        left = []
        for cell in group:
            if (key := self.run.key(cell)) in self._done:
                with self._lock:
                    self._known.learn(cell, self._done[key])
            else:
                left.append(Task(cell, key, partial(self._begin, cell, key), partial(self._note, cell)))
        return left

    def _begin(self, cell: Cell, key: str) -> None:
        """Mark a cell as running."""
        gone = record_of(cell, key, self.run, NOT_RECORDED)
        attempt = self._attempts.current.get(key, 0)
        draft = replace(gone, attempt=attempt, settings=gone.settings | {"cells_before": self._ended})
        in_progress.put(self._writer.folder, draft)
        with self._lock:
            self._running.add(key)
            self.progress.start(cell)

    def _note(self, cell: Cell, note: Note) -> None:
        with self._lock:
            self.progress.note(cell, note)

    def _measure(self, tasks: Sequence[Task], records: Generator[Record]) -> None:
        """Add the record of each task. Tasks that are interrupted while they run are recorded as cancelled."""
        try:
            with closing(records):
                for task, record in zip(tasks, records, strict=True):
                    self._add(task, record)
        except (KeyboardInterrupt, Stopped):
            if self._silent:
                raise  # the mark stays for the scheduler that ended the run
            stopped = failed("cancelled", "interrupted; the same command continues here")
            with suppress(RecordingError), self._lock:
                for task in tasks:
                    if task.key in self._running:
                        self._writer.add(self._numbered(record_of(task.cell, task.key, self.run, stopped)))
                        in_progress.remove(self._writer.folder, task.key)
            raise

    def _add(self, task: Task, record: Record) -> None:
        record = self._numbered(record)
        with self._lock:
            try:
                self._writer.add(record)
            finally:  # a full disk is not the cell's fault
                in_progress.remove(self._writer.folder, task.key)
            self._running.discard(task.key)
            self._ended += 1
            self._done[task.key] = record.outcome
            self._known.learn(task.cell, record.outcome)
            self.progress.end(task.cell, record)

    def _numbered(self, record: Record) -> Record:
        return replace(record, attempt=self._attempts.current.get(record.cell, 0))

    def _side_by_side(self, dealt: dict[Card, list[Cell]]) -> None:
        """Run a thread for each card. An error in one thread, or an interrupt, stops all."""
        with stopping() as stop, ThreadPoolExecutor(len(dealt)) as threads:
            works = enumerate(dealt.items())
            futures = [threads.submit(self._in_turn, cells, card, stop, lane) for lane, (card, cells) in works]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            except SystemExit:
                self._silent = True
                raise
            finally:
                if not all(future.done() for future in futures):
                    os.eventfd_write(stop, 1)
            errors = [error for future in futures if (error := future.exception()) is not None]
            for error in sorted(errors, key=lambda one: isinstance(one, Stopped)):
                raise error


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
