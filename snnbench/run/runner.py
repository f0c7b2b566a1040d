"""The runner: it turns a cell into exactly one record, even if its worker fails."""

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass

from snnbench.cases import nodes
from snnbench.cases.outcome import Outcome, failed, skipped
from snnbench.environments import store
from snnbench.files import home
from snnbench.machine import cpus, gpus, throttling
from snnbench.machine.gpus import Card, Watch
from snnbench.plan.cell import Cell
from snnbench.recording.record import Record
from snnbench.run import known_outcomes, process, slots
from snnbench.run.endings import record_of
from snnbench.run.process import Ending
from snnbench.run.setup import Run


@dataclass(frozen=True, slots=True)
class Task:
    """A cell to be measured, with its content-addressed name; `begun` is called once it has its slot."""

    cell: Cell
    key: str
    begun: Callable[[], None] = lambda: None


def measure(
    cell: Cell,
    key: str,
    run: Run,
    known: known_outcomes.KnownOutcomes,
    card: Card | None = None,
    stop: int | None = None,
    lane: int = 0,
) -> Record:
    """Run one cell's worker, as `measure_together` does."""
    (record,) = measure_together([Task(cell, key)], run, known, card, stop, lane)
    return record


def measure_together(
    tasks: Sequence[Task],
    run: Run,
    known: known_outcomes.KnownOutcomes,
    card: Card | None = None,
    stop: int | None = None,
    lane: int = 0,
) -> list[Record]:
    """Run the workers of one cell, or of two that take turns, on a card if one is given. Raises process.Stopped.

    A cell with a known outcome starts no worker. Cells that run side by side have different `lane`s, and so different
    CPUs.
    """
    ends: dict[str, Outcome | Ending] = {
        task.key: outcome for task in tasks if (outcome := _known(task.cell, run, known, lane))
    }
    observed: Collection[str] = ()
    if left := [task for task in tasks if task.key not in ends]:
        endings, observed = _run_workers(left, run, card, stop, lane)
        ends |= endings
    return [record_of(task.cell, task.key, run, ends[task.key], observed, card) for task in tasks]


def _run_workers(
    tasks: Sequence[Task], run: Run, card: Card | None, stop: int | None, lane: int
) -> tuple[dict[str, Outcome | Ending], Collection[str]]:
    """How each task's worker ended, and the flags of disturbances that the harness saw meanwhile."""
    timed = any(task.cell.measure != "verify" for task in tasks)
    with slots.held(card.name if card else None, run.say, stop) if timed else nullcontext():
        for task in tasks:
            task.begun()
        index = card.index if card else None
        before, watch = throttling.counters(card_index=index), Watch(card) if card else None
        endings = _endings(tasks, run, card, stop, lane)
        observed = {"throttled"} if throttling.grown(before, throttling.counters(card_index=index)) else set()
        observed |= {"shared"} if watch and watch.others(len(tasks)) else set()
    return {task.key: ending for task, ending in zip(tasks, endings, strict=True)}, observed


def _known(cell: Cell, run: Run, known: known_outcomes.KnownOutcomes, lane: int) -> Outcome | None:
    """The outcome of a cell that need not or cannot be run, else None."""
    setup = run.setups[cell.side]
    if refusal := setup.adapters[cell.library].variants[cell.variant].refusal(cell.case):
        return skipped("unsupported", refusal)
    if problem := setup.interpreters[cell.contender].problem:
        return failed("environment", problem)
    if cell.case.device.startswith("cuda") and not gpus.has_cuda():
        return skipped("unavailable", "no CUDA device on this machine; run it on one")
    if predicted := known.predict(cell):
        return predicted
    try:
        cpus.cpus(cell.case.cpus(nodes.count()), lane=lane)
    except ValueError as error:
        return skipped("unavailable", str(error))
    return None


def _endings(tasks: Sequence[Task], run: Run, card: Card | None, stop: int | None, lane: int) -> list[Outcome | Ending]:
    """How the worker of each task ended; an outcome if it could not be started."""
    if len(tasks) == 1:
        return [_ending(tasks[0].cell, run, card, stop, lane)]
    first, second = tasks
    with process.stopping() as halt, process.turns() as (early, late), ThreadPoolExecutor(2) as threads:
        given = run, card, halt if stop is None else stop, lane
        futures = [threads.submit(_ending, task.cell, *given, turn) for task, turn in ((first, early), (second, late))]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            if not all(future.done() for future in futures):
                os.eventfd_write(halt, 1)
        return [future.result() for future in futures]


def _ending(
    cell: Cell, run: Run, card: Card | None, stop: int | None, lane: int, ends: process.Ends | None = None
) -> Outcome | Ending:
    """How a cell's worker ended. If it takes turns, the timeout is doubled, for it waits while the other works."""
    setup = run.setups[cell.side]
    interpreter = setup.interpreters[cell.contender]
    extra = process.ALLOCATOR if cell.measure == "memory" else {}
    if card is not None:
        extra = extra | {"CUDA_VISIBLE_DEVICES": card.uuid}
    try:
        return process.run(
            interpreter.python,
            setup.adapters[cell.library].path,
            cell.request(run.protocol, cpus.cpus(cell.case.cpus(nodes.count()), lane=lane), run.memory_bytes),
            process.environment(
                cell.case.threads,
                home(),
                {**extra, **setup.variables},
                interpreter.python == store.current(),
            ),
            run.protocol.timeout_seconds * (2 if ends else 1),
            stop,
            ends,
        )
    except process.CannotWait as error:
        return skipped("unavailable", str(error))
    except OSError as error:
        return failed("environment", f"the worker cannot be started: {error}")
    finally:
        if ends:
            ends.close()
