"""The local executor: it turns every planned cell into a record. One at a time is measured on the CPU and on each card.

Cases are dealt out to the cards. All cells of a case run on one card, so that contenders are compared on the same card.
Cells on cards come first. Cells on the CPU have the machine for themselves.

Cells form groups: those that run together, those of a card, and those that share a process.
"""

import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Protocol as Interface

from snnbench.cases.case import Case
from snnbench.cases.outcome import failed
from snnbench.machine import cpus
from snnbench.machine.gpus import Card
from snnbench.plan.cell import Cell
from snnbench.recording.record import Record, RecordingError
from snnbench.run import known_outcomes, verifier
from snnbench.run.endings import record_of
from snnbench.run.process import Broken, Stopped, stopping
from snnbench.run.runner import Lane, Task
from snnbench.run.setup import RunContext
from snnbench.run.store import Store
from snnbench.worker import floor
from snnbench.worker.durations import median_ns
from snnbench.worker.messages import EXCHANGES, Note


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


def fit(cells: Sequence[Cell], memory_bytes: int) -> bool:
    """Whether the workers of these cells may prepare at once, in so much memory."""
    least = [floor.least_bytes(cell.case, "train") for cell in cells]
    waits = [cell.measure == "time" or cell.case.device.startswith("cuda") for cell in cells]
    drawn = [each for each, wait in zip(least, waits, strict=True) if wait]
    if all(cell.case.device.startswith("cuda") for cell in cells):
        work = max(drawn, default=0)  # a copy of the one whose turn it is
    else:
        at_once = sum(each for each, wait in zip(least, waits, strict=True) if not wait)
        work = RELAYED_TIMES * (max(drawn, default=0) + at_once)
    taken = sum(drawn) + work + LOADED_BYTES * len(cells)
    return len(cells) <= min(MOST_RELAYED, RELAYED_PER_CPU * cpus.usable_cpus()) and taken <= memory_bytes


UNTIMED = ("verify", *EXCHANGES)
"""The measures of cells without a time."""
NOT_RECORDED = failed("lost", "the run ended before this cell was recorded")
"""The provisional outcome of a running cell."""
RELAYED_PER_CPU = 2
"""Workers that prepare at once, for each CPU: with one, a core idles at the end; with four, threads wait for theirs."""
MOST_RELAYED = 16
"""The most workers that prepare at once: an interrupted run loses their work."""
RELAYED_TIMES = 32
"""The least bytes of all workers that work at once must fit into the memory so often, because a library may need many
times the least bytes."""
LOADED_BYTES = 1 << 30
"""A worker that waits for its turn holds its libraries and an exam, beside what it has drawn."""


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


@dataclass(slots=True)
class Budget:
    """The seconds in which cells are measured, from now on. A cell is expected to take as long as the `ended` ones."""

    seconds: float
    ended: int = 0
    began: float = field(default_factory=time.monotonic)

    def is_over(self, waiting: int = 0) -> bool:
        """Whether another cell behind so many `waiting` ones would end too late."""
        spent = time.monotonic() - self.began
        return spent + (waiting + 1) * spent / max(1, self.ended) * (self.ended > 0) > self.seconds


class Executor:
    """One run over its plan; several threads may share it, each with a card.

    If it `stops_early`, as an A/B test does, cells of a work that crashed on one side are left out. No cell is begun
    that may not end before the `budget` is over.
    """

    def __init__(
        self,
        run: RunContext,
        store: Store,
        progress: Progress,
        retry: Collection[str] = (),
        stops_early: bool = False,
        budget: Budget | None = None,
    ) -> None:
        self.run, self.progress, self._stops_early, self._budget = run, progress, stops_early, budget
        self._store, self._done, self._attempts = store, store.done(retry), store.attempts()
        self._known, self._lock = known_outcomes.KnownOutcomes(), Lock()
        self._ended, self._silent = 0, False
        self._running: set[str] = set()

    def execute(self, plan: Sequence[Cell], cards: Sequence[Card] = ()) -> None:
        """Run the missing cells of `plan`, then measure disturbed cells again.

        Rounds repeat as often as the protocol allows; each has the whole plan, so that every case keeps its card. An
        interrupt records the cells that it stopped as cancelled.
        """
        # A cell on several cards sees all of them, and holds the CPUs, which every cell on a card shares.
        on_card = {cell: cell.case.device.startswith("cuda") and cell.case.processes == 1 for cell in plan}
        on_cards = [cell for cell in plan if on_card[cell]]
        on_cpus = [cell for cell in plan if not on_card[cell]]
        while True:
            dealt = deal(on_cards, self._with_cpus(on_cards, cards))
            if len(dealt) <= 1:
                self._in_turn(on_cards, self._lane(cards[0] if cards else None))
            else:
                lanes = [(own, self._lane(card, number)) for number, (card, own) in enumerate(dealt.items())]
                self._side_by_side([partial(self._in_turn, own, lane) for own, lane in lanes])
            self._at_once([cell for cell in on_cpus if cell.measure in UNTIMED])
            self._in_turn([cell for cell in on_cpus if cell.measure not in UNTIMED], self._lane())
            if self._is_over() or not (again := self._disturbed(plan)):
                return
            self.run.say(f"{len(again)} of {len(plan)} cells were disturbed, and are measured again")
            for key in again:
                self._done.pop(key)
                self._attempts.current[key] = self._attempts.next[key]
            self.progress.add(list(again.values()))

    def _lane(self, card: Card | None = None, number: int = 0) -> Lane:
        return Lane(self.run, self._known, card, number=number)

    def _disturbed(self, plan: Sequence[Cell]) -> dict[str, Cell]:
        """The cells to be measured once more, in the order of the plan. Only the whole recording shows them."""
        self._attempts = self._store.attempts()
        due = {key for key, attempt in self._attempts.next.items() if attempt <= self.run.protocol.remeasure}
        return {key: cell for cell in plan if (key := self.run.key(cell)) in due} if due else {}

    def _at_once(self, cells: Sequence[Cell]) -> None:
        """Verify cells on the CPU, as many at once as there are CPUs: nothing is timed. Compiled ones come last."""
        sharing = Sharing(cells, partial(verifier.group_of, run=self.run), self.run.compiles)
        count = min(cpus.usable_cpus(), len(cells))
        self._side_by_side([partial(self._verify, sharing, self._lane()) for _ in range(count)])

    def _verify(self, sharing: Sharing, lane: Lane, stop: int) -> None:
        with verifier.Verifier(replace(lane, stop=stop)) as verifying:
            for cell in sharing.cells():
                for task in self._left([cell]):
                    with self._cancelling([task]):
                        self._add(task, verifying.record_of(task))

    def _with_cpus(self, cells: Sequence[Cell], cards: Sequence[Card]) -> Sequence[Card]:
        """As many cards as can have CPUs of their own: a neighbour must not slow down the host side of a cell."""
        if cells and any(card.exclusive for card in cards):
            self.run.say("the card is in exclusive mode: workers use it one at a time, from their exam on")
        widest = max((cell.case.threads for cell in cells), default=1)
        most = max(1, cpus.usable_cpus() // widest)
        if most < len(cards):
            self.run.say(
                f"{most} of {len(cards)} cards are used: a cell takes {widest} CPUs of its own. With "
                f"--set case.threads={max(1, cpus.usable_cpus() // len(cards))} all are used"
            )
        return cards[:most]

    def _in_turn(self, cells: Iterable[Cell], lane: Lane, stop: int | None = None) -> None:
        for tasks, records in self._measured(cells, replace(lane, stop=stop)):
            with self._cancelling(tasks), closing(records):
                for task, record in zip(tasks, records, strict=True):
                    self._add(task, record)

    def _measured(self, cells: Iterable[Cell], lane: Lane) -> Iterator[tuple[list[Task], Generator[Record]]]:
        """Tasks that are measured together, and their records, in turn."""
        waiting: list[Task] = []  # single cells, which prepare together
        for group in together(cells):
            if self._is_over(len(waiting)):
                break
            tasks = self._left(group)
            needs_worker = any(lane.known_outcome(task.cell) is None for task in tasks)
            single = len(tasks) == 1 and tasks[0].cell.case.processes == 1  # it can prepare while others measure
            can_wait = needs_worker and single and tasks[0].cell.measure not in UNTIMED
            together_with = [task.cell for task in (*waiting, *tasks)]
            if needs_worker and not (can_wait and fit(together_with, self.run.memory_bytes)):
                yield waiting, lane.relay(waiting)
                waiting = []
            if can_wait:
                waiting += tasks
            else:
                yield tasks, lane.measure(tasks)
        yield waiting, lane.relay(waiting)

    def _is_over(self, waiting: int = 0) -> bool:
        """Whether a cell would end after the budget, behind so many cells that wait."""
        return self._budget is not None and self._budget.is_over(waiting)

    def _left(self, group: Iterable[Cell]) -> list[Task]:
        """The cells of a group that have no outcome yet."""
        left = []
        for cell in group:
            if (key := self.run.key(cell)) in self._done:
                with self._lock:
                    self._known.learn(cell, self._done[key])
            elif not (self._stops_early and self._known.is_broken(cell)):
                left.append(Task(cell, key, partial(self._begin, cell, key), partial(self._note, cell)))
        return left

    def _begin(self, cell: Cell, key: str) -> None:
        """Mark a cell as running."""
        gone = record_of(cell, key, self.run, NOT_RECORDED)
        attempt = self._attempts.current.get(key, 0)
        self._store.mark(replace(gone, attempt=attempt, settings=gone.settings | {"cells_before": self._ended}))
        with self._lock:
            self._running.add(key)
            self.progress.start(cell)

    def _note(self, cell: Cell, note: Note) -> None:
        with self._lock:
            self.progress.note(cell, note)

    @contextmanager
    def _cancelling(self, tasks: Sequence[Task]) -> Iterator[None]:
        """Record tasks as cancelled that are interrupted while they run, or that the state of the machine breaks."""
        try:
            yield
        except (KeyboardInterrupt, Stopped, Broken) as error:
            if self._silent:
                raise  # the mark stays for the scheduler that ended the run
            stopped = failed("cancelled", str(error) if isinstance(error, Broken) else self._store.interrupted)
            with suppress(RecordingError), self._lock:
                for task in tasks:
                    if task.key in self._running:
                        self._store.add(self._numbered(record_of(task.cell, task.key, self.run, stopped)))
            raise

    def _add(self, task: Task, record: Record) -> None:
        record = self._numbered(record)
        with self._lock:
            self._store.add(record)
            self._running.discard(task.key)
            self._ended += 1
            if self._budget:
                self._budget.ended += 1
            self._done[task.key] = record.outcome
            self._known.learn(task.cell, record.outcome)
            for phase in task.cell.phases if record.outcome.is_same_work else ():
                self._known.learn_time(task.cell.case, median_ns(record.phases[phase]))
            self.progress.end(task.cell, record)

    def _numbered(self, record: Record) -> Record:
        return replace(record, attempt=self._attempts.current.get(record.cell, 0))

    def _side_by_side(self, works: Sequence[Callable[..., None]]) -> None:
        """Do each work in a thread. A work takes the descriptor `stop`. An error in one, or an interrupt, stops all."""
        if not works:
            return
        with stopping() as stop, ThreadPoolExecutor(len(works)) as threads:
            futures = [threads.submit(work, stop=stop) for work in works]
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
