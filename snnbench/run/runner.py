"""Lanes, in which cells run: each cell becomes exactly one record, even if its worker fails."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace

from snnbench.cases import nodes
from snnbench.cases.outcome import Outcome, failed, skipped
from snnbench.environments import compiler_caches, cuda_toolkit, store
from snnbench.files import home
from snnbench.machine import cpus, gpus, throttling
from snnbench.machine.gpus import Card, Watch
from snnbench.plan.cell import Cell
from snnbench.recording.record import Record
from snnbench.run import known_outcomes, pipes, process, slots
from snnbench.run.endings import blameless, record_of
from snnbench.run.process import Ending, Worker
from snnbench.run.setup import RunContext
from snnbench.worker.messages import Announce, Request, silent

CONTEXT_BYTES = 1 << 30
"""Memory of a card that a process holds which has taken the exam there, with room to spare."""
CONTEXTS_SHARE = 1 / 8
"""The share of a card's memory that processes may hold which wait for their turn."""


@dataclass(frozen=True, slots=True)
class Task:
    """A cell to be measured, with its content-addressed name.

    `begun` is called once it has its slot; `announce` gets the notes of its worker.
    """

    cell: Cell
    key: str
    begun: Callable[[], None] = lambda: None
    announce: Announce = silent


@dataclass(frozen=True, slots=True)
class Lane:
    """A place in which cells run one after the other: on its card, or on the CPUs.

    Lanes that run side by side have different numbers, and so different CPUs; they learn from each other which outcomes
    are known. All methods that run workers raise process.Stopped once the descriptor `stop` is readable.
    """

    run: RunContext
    known: known_outcomes.KnownOutcomes
    card: Card | None = None
    stop: int | None = None
    number: int = 0

    def measure(self, tasks: Sequence[Task]) -> Generator[Record]:
        """Run the workers of one cell, or of two that take turns. A cell with a known outcome starts no worker."""
        ends: dict[str, Outcome | Ending] = {
            task.key: outcome for task in tasks if (outcome := self.known_outcome(task.cell))
        }
        flags: set[str] = set()
        if left := [task for task in tasks if task.key not in ends]:
            pipes_between = pipes.turns() if len(left) > 1 else nullcontext([None])
            with self._slot(left):
                for task in left:
                    task.begun()
                with self._observed(len(left)) as flags, pipes_between as between, ExitStack() as stack:
                    starts: list[Worker | Outcome] = []
                    for task, own_ends in zip(left, between, strict=True):
                        program, request = self.program_of(task.cell), self.request_of(task.cell)
                        starts.append(process.start(stack, program, request, own_ends))
                    endings = self._endings(left, starts)
            ends |= {task.key: ending for task, ending in zip(left, endings, strict=True)}
        for task in tasks:
            yield record_of(task.cell, task.key, self.run, ends[task.key], flags, self.card)

    def relay(self, tasks: Sequence[Task]) -> Generator[Record]:
        """Run the workers of single cells, one after the other; yield each record at once.

        All are ready before the first time is measured (worker/relay.py), so until then a worker may take the timeouts
        of all. If an earlier record makes the outcome of a cell known, its worker measures nothing.
        """
        return self._relayed(tasks) if len(tasks) > 1 else self.measure(tasks)

    def _relayed(self, tasks: Sequence[Task]) -> Generator[Record]:
        timeout_s = self.run.protocol.timeout_seconds
        times = [number for number, task in enumerate(tasks) if task.cell.measure == "time"]
        leader = 0 if self.card else next(iter(times), 0)  # on a card a worker that measures memory waits, too
        on_card = self._on_card(tasks)
        with self._slot(tasks), pipes.relay(len(tasks), leader, on_card) as relay, ExitStack() as stack:
            starts: list[Worker | Outcome] = []
            for task, ends in zip(tasks, relay.ends, strict=True):
                program, request = self.program_of(task.cell), self.request_of(task.cell)
                starts.append(process.start(stack, program, request, ends))
            for number, (task, start) in enumerate(zip(tasks, starts, strict=True)):
                task.begun()
                predicted = self.known.predict(task.cell)
                if not predicted:
                    relay.open_gate(number, self.known.enough_ns(task.cell))
                waiting = sum(each > number for each in on_card)
                workers = len(on_card) if number == leader else 1
                with self._observed(workers, waiting) as flags:
                    together = len(tasks) if number <= leader else 1
                    end = predicted or _ending(start, task, together * timeout_s, self.stop)
                yield record_of(task.cell, task.key, self.run, end, flags, self.card)

    def _on_card(self, tasks: Sequence[Task]) -> list[int]:
        """The numbers of the tasks whose workers may use the card before their turn (worker/relay.py)."""
        if not self.card or self.card.exclusive:
            return []
        most = int(CONTEXTS_SHARE * self.card.memory_bytes) // CONTEXT_BYTES
        return [number for number, task in enumerate(tasks) if task.cell.measure == "time"][:most]

    def known_outcome(self, cell: Cell) -> Outcome | None:
        """The outcome of a cell that need not or cannot be run, else None."""
        setup = self.run.setups[cell.side]
        if refusal := cell.refusal(setup.adapters[cell.library]):
            return skipped("unsupported", refusal)
        if problem := setup.interpreter(cell.contender, cell.case).problem:
            return blameless(failed("environment", problem))
        if cell.case.device.startswith("cuda") and not gpus.has_cuda():
            return skipped("unavailable", "no CUDA device on this machine; run it on one")
        if predicted := self.known.predict(cell):
            return predicted
        if reason := cell.hindrance():
            return skipped("unprovable", reason)
        try:
            self._cpus(cell)
        except ValueError as error:
            return skipped("unavailable", str(error))
        return None

    def request_of(self, cell: Cell) -> Request:
        """The request to a cell's worker."""
        request = cell.request(self.run.protocol, self._cpus(cell), self.run.memory_bytes)
        return replace(request, enough_ns=self.known.enough_ns(cell))

    def program_of(self, cell: Cell) -> process.Program:
        """What a cell's worker runs. Raises process.Broken."""
        setup = self.run.setups[cell.side]
        extra = process.further(cell.measure, home())
        if self.card is not None:
            extra |= {"CUDA_VISIBLE_DEVICES": self.card.uuid} | compiler_caches.of_own_programs(home())
        python = setup.interpreter(cell.contender, cell.case).python
        current = python == store.current()
        if self.card is not None and not current:
            extra |= cuda_toolkit.variables(python.parent.parent)
        extra |= setup.variables
        env = process.environment(cell.case.threads, home(), extra, current)
        return process.Program(python, setup.adapters[cell.library].path, env, self.run.protocol.timeout_seconds)

    def _cpus(self, cell: Cell) -> list[int]:
        """The CPUs of a cell's worker. Raises ValueError if there are too few."""
        return cpus.cpus(cell.case.cpus(nodes.count()), lane=self.number)

    def _slot(self, tasks: Sequence[Task]) -> AbstractContextManager[None]:
        """The slot of the card or of the CPUs; none is needed if no task is measured."""
        is_measured = any(task.cell.measure != "verify" for task in tasks)
        name = self.card.name if self.card else None
        return slots.held(name, self.run.say, self.stop) if is_measured else nullcontext()

    @contextmanager
    def _observed(self, workers: int = 1, waiting: int = 0) -> Iterator[set[str]]:
        """The flags of disturbances that the harness sees while `workers` run: a set that is complete at the end.

        Of those that wait for their turn, so many are `waiting` on the card.
        """
        flags: set[str] = set()
        index = self.card.index if self.card else None
        before, watch = throttling.counters(card_index=index), Watch(self.card, None, waiting) if self.card else None
        yield flags
        if throttling.grown(before, throttling.counters(card_index=index)):
            flags.add("throttled")
        if watch and watch.others(workers):
            flags.add("shared")

    def _endings(self, tasks: Sequence[Task], starts: Sequence[Worker | Outcome]) -> list[Outcome | Ending]:
        """How the worker of each task ended; an outcome if it could not be started."""
        timeout_s = self.run.protocol.timeout_seconds
        if len(tasks) == 1:
            return [_ending(starts[0], tasks[0], timeout_s, self.stop)]
        with process.stopping() as halt, ThreadPoolExecutor(2) as threads:
            stop = halt if self.stop is None else self.stop
            # A worker waits while the other one works.
            futures = [
                threads.submit(_ending, start, task, 2 * timeout_s, stop)
                for task, start in zip(tasks, starts, strict=True)
            ]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                if not all(future.done() for future in futures):
                    os.eventfd_write(halt, 1)
            return [future.result() for future in futures]


def _ending(worker: Worker | Outcome, task: Task, timeout_s: float, stop: int | None) -> Outcome | Ending:
    """How the worker of a task ended; an outcome if it could not be started, or cannot be waited for."""
    if isinstance(worker, Outcome):
        return worker
    try:
        return worker.wait(timeout_s, stop, task.announce)
    except process.CannotWait as error:
        return skipped("unavailable", str(error))
