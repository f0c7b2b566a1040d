"""The verifier: it verifies cells one after the other, and cells of one adapter in one environment share a process.

A process that shares is a server (worker/server.py). It loads the libraries once, and each cell is a fork of it. A
failure in a server accuses nobody: the cell is verified again in a process of its own, and the cells after it get a new
server. If a server fails its first cell, its adapter breaks servers, and each cell gets a process of its own.
"""

from collections.abc import Hashable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from snnbench.plan.cell import Cell
from snnbench.recording.record import Record
from snnbench.run import process
from snnbench.run.endings import outcome_of, record_of
from snnbench.run.process import Ending, Worker
from snnbench.run.runner import Lane, Task
from snnbench.run.setup import RunContext


def group_of(cell: Cell, run: RunContext) -> Hashable:
    """The key that cells of one process share: side, adapter, environment and threads."""
    setup = run.setups[cell.side]
    return cell.side, cell.library, setup.interpreter(cell.contender, cell.case).python, cell.case.threads


class Verifier:
    """A context that holds at most one server."""

    def __init__(self, lane: Lane) -> None:
        self._lane, self._run = lane, lane.run
        self._stack = ExitStack()
        self._server: Worker | None = None
        self._group: Hashable = None
        self._answered = 0
        self._alone: set[Hashable] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def record_of(self, task: Task) -> Record:
        """The record of one cell. Raises process.Stopped."""
        known = self._lane.known_outcome(task.cell)
        group = group_of(task.cell, self._run)
        if not known and task.cell.case.processes == 1 and group not in self._alone:
            task.begun()
            if ending := self._shared(task, group):
                return record_of(task.cell, task.key, self._run, ending)
        (record,) = self._lane.measure([task])
        return record

    def _shared(self, task: Task, group: Hashable) -> Ending | None:
        """The ending of a cell in a server; None if it failed there, or if there can be no server."""
        timeout_s = self._run.protocol.timeout_seconds
        try:
            server, request = self._server_of(task.cell, group), self._lane.request_of(task.cell)
            ending = server.ask(request, timeout_s, self._lane.stop, task.announce) if server else None
        except (OSError, process.CannotWait):
            ending = None
        if ending is None or outcome_of(ending, timeout_s).status == "failed":
            self._end_server()
            if not self._answered:
                self._alone.add(group)
            return None
        self._answered += 1
        return ending

    def _server_of(self, cell: Cell, group: Hashable) -> Worker | None:
        """The server of a group: the one that runs, or a new one; None if it cannot be started."""
        if self._server is None or self._group != group:
            self._end_server()
            server = process.start(self._stack, self._lane.program_of(cell))
            self._server = server if isinstance(server, Worker) else None
            self._group, self._answered = group, 0
        return self._server

    def _end_server(self) -> None:
        self._stack.close()
        self._server = None
