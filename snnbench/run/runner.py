"""The runner: it turns a cell into exactly one record, even if its worker fails."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from snnbench.cases import nodes
from snnbench.cases.outcome import Outcome, failed, skipped
from snnbench.environments import store
from snnbench.files import home
from snnbench.machine import cpus, gpus, throttling
from snnbench.machine.gpus import Card, Watch
from snnbench.plan.cell import Cell
from snnbench.recording.record import Record
from snnbench.run import known_outcomes, pipes, process, slots
from snnbench.run.endings import blameless, record_of
from snnbench.run.process import Ending, Worker
from snnbench.run.setup import RunContext
from snnbench.worker.messages import Announce, silent


@dataclass(frozen=True, slots=True)
class Task:
    """A cell to be measured, with its content-addressed name.

    `begun` is called once it has its slot; `announce` gets the notes of its worker.
    """

    cell: Cell
    key: str
    begun: Callable[[], None] = lambda: None
    announce: Announce = silent


def measure_together(
    tasks: Sequence[Task],
    run: RunContext,
    known: known_outcomes.KnownOutcomes,
    card: Card | None = None,
    stop: int | None = None,
    lane: int = 0,
) -> Generator[Record]:
    """Run the workers of one cell, or of two that take turns, on a card if one is given. Raises process.Stopped.

    A cell with a known outcome starts no worker. Cells that run side by side have different `lane`s, and so different
    CPUs.
    """
    ends: dict[str, Outcome | Ending] = {
        task.key: outcome for task in tasks if (outcome := known_outcome(task.cell, run, known, lane))
    }
    flags: set[str] = set()
    if left := [task for task in tasks if task.key not in ends]:
        with _slot(left, run, card, stop):
            for task in left:
                task.begun()
            with _observed(card, len(left)) as flags:
                endings = _endings(left, run, card, stop, lane)
        ends |= {task.key: ending for task, ending in zip(left, endings, strict=True)}
    for task in tasks:
        yield record_of(task.cell, task.key, run, ends[task.key], flags, card)


def measure_in_relay(
    tasks: Sequence[Task],
    run: RunContext,
    known: known_outcomes.KnownOutcomes,
    card: Card | None = None,
    stop: int | None = None,
    lane: int = 0,
) -> Generator[Record]:
    """Run the workers of several cells, one after the other, on a card if one is given; yield each record at once.

    All are ready before the first time is measured (worker/relay.py), so until then a worker may take the timeouts of
    all. If an earlier record makes the outcome of a cell known, its worker measures nothing. Raises process.Stopped.
    """
    timeout_s = run.protocol.timeout_seconds
    times = [number for number, task in enumerate(tasks) if task.cell.measure == "time"]
    leader = 0 if card else next(iter(times), 0)  # on a card every worker waits, also one that measures memory
    with _slot(tasks, run, card, stop), pipes.relay(len(tasks), leader) as relay, ExitStack() as stack:
        starts = [_start(stack, task.cell, run, ends, card, lane) for task, ends in zip(tasks, relay.ends, strict=True)]
        for number, (task, start) in enumerate(zip(tasks, starts, strict=True)):
            task.begun()
            predicted = known.predict(task.cell)
            if not predicted:
                relay.open_gate(number)
            with _observed(card) as flags:
                if isinstance(start, Outcome):
                    end: Outcome | Ending = start
                else:
                    together = len(tasks) if number <= leader else 1
                    end = predicted or _ending(start, task, together * timeout_s, stop)
            yield record_of(task.cell, task.key, run, end, flags, card)


def _slot(tasks: Sequence[Task], run: RunContext, card: Card | None, stop: int | None) -> AbstractContextManager[None]:
    """The slot of a card or of the CPUs; none is needed if no task is measured."""
    is_measured = any(task.cell.measure != "verify" for task in tasks)
    return slots.held(card.name if card else None, run.say, stop) if is_measured else nullcontext()


@contextmanager
def _observed(card: Card | None = None, workers: int = 1) -> Iterator[set[str]]:
    """The flags of disturbances that the harness sees while `workers` run: a set that is complete at the end."""
    flags: set[str] = set()
    index = card.index if card else None
    before, watch = throttling.counters(card_index=index), Watch(card) if card else None
    yield flags
    if throttling.grown(before, throttling.counters(card_index=index)):
        flags.add("throttled")
    if watch and watch.others(workers):
        flags.add("shared")


def known_outcome(cell: Cell, run: RunContext, known: known_outcomes.KnownOutcomes, lane: int = 0) -> Outcome | None:
    """The outcome of a cell that need not or cannot be run, else None."""
    setup = run.setups[cell.side]
    if refusal := cell.refusal(setup.adapters[cell.library]):
        return skipped("unsupported", refusal)
    if problem := setup.interpreter(cell.contender, cell.case).problem:
        return blameless(failed("environment", problem))
    if cell.case.device.startswith("cuda") and not gpus.has_cuda():
        return skipped("unavailable", "no CUDA device on this machine; run it on one")
    if predicted := known.predict(cell):
        return predicted
    if reason := cell.hindrance():
        return skipped("unprovable", reason)
    try:
        cpus.cpus(cell.case.cpus(nodes.count()), lane=lane)
    except ValueError as error:
        return skipped("unavailable", str(error))
    return None


def _endings(
    tasks: Sequence[Task], run: RunContext, card: Card | None, stop: int | None, lane: int
) -> list[Outcome | Ending]:
    """How the worker of each task ended; an outcome if it could not be started."""
    timeout_s = run.protocol.timeout_seconds
    if len(tasks) == 1:
        return [_whole(tasks[0], run, card, lane, timeout_s, stop)]
    first, second = tasks
    with process.stopping() as halt, pipes.turns() as (early, late), ThreadPoolExecutor(2) as threads:
        # A worker waits while the other one works.
        given = run, card, lane, 2 * timeout_s, halt if stop is None else stop
        futures = [threads.submit(_whole, task, *given, ends) for task, ends in ((first, early), (second, late))]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            if not all(future.done() for future in futures):
                os.eventfd_write(halt, 1)
        return [future.result() for future in futures]


def _whole(
    task: Task,
    run: RunContext,
    card: Card | None,
    lane: int,
    timeout_s: float,
    stop: int | None,
    ends: pipes.Ends | None = None,
) -> Outcome | Ending:
    """How the worker of a task ended, from its start."""
    with ExitStack() as stack:
        start = _start(stack, task.cell, run, ends, card, lane)
        return start if isinstance(start, Outcome) else _ending(start, task, timeout_s, stop)


def _start(
    stack: ExitStack,
    cell: Cell,
    run: RunContext,
    ends: pipes.Ends | None = None,
    card: Card | None = None,
    lane: int = 0,
) -> Worker | Outcome:
    """A cell's worker, which is gone when the stack closes; an outcome if its Python cannot be started.

    Raises process.Broken if no Python could be.
    """
    setup = run.setups[cell.side]
    python = setup.interpreter(cell.contender, cell.case).python
    try:
        return stack.enter_context(
            process.started(
                python,
                setup.adapters[cell.library].path,
                request_of(cell, run, lane),
                worker_environment(cell, run, card),
                run.protocol.timeout_seconds,
                ends,
            )
        )
    except OSError as error:
        if error.filename != str(python):
            raise process.Broken(error) from error
        return failed("environment", f"the worker cannot be started: {error}")
    finally:
        if ends:
            ends.close()


def request_of(cell: Cell, run: RunContext, lane: int = 0) -> process.Question:
    """The request to a cell's worker."""
    return cell.request(run.protocol, cpus.cpus(cell.case.cpus(nodes.count()), lane=lane), run.memory_bytes)


def worker_environment(cell: Cell, run: RunContext, card: Card | None = None) -> dict[str, str]:
    """The environment variables of a cell's worker."""
    setup = run.setups[cell.side]
    extra = process.further(cell.measure, home())
    if card is not None:
        extra |= {"CUDA_VISIBLE_DEVICES": card.uuid}
    extra |= setup.variables
    current = setup.interpreter(cell.contender, cell.case).python == store.current()
    return process.environment(cell.case.threads, home(), extra, current)


def _ending(worker: Worker, task: Task, timeout_s: float, stop: int | None) -> Outcome | Ending:
    """How the worker of a task ended; an outcome if it cannot be waited for."""
    try:
        return worker.wait(timeout_s, stop, task.announce)
    except process.CannotWait as error:
        return skipped("unavailable", str(error))
