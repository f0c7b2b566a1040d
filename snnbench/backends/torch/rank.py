"""The process of a rank: it builds its part of each problem, and runs a pass at each command of rank 0.

    python -m snnbench.backends.torch.rank ARGUMENTS

The arguments are a JSON object: the adapter's `file`, `host` and `port` of the group's store, `rank` of `ranks`, the
`kind` of device, the number of the rank among the `local` ones of its machine, its `cpus`, and the `descriptor` of its
socket to rank 0.
"""

import ctypes
import json
import os
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.backends.torch import wire
from snnbench.cases import cpu_time

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve rank 0 until it goes."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    given = json.loads(sys.argv[1])
    os.sched_setaffinity(0, given["cpus"])
    connection = socket.socket(fileno=given["descriptor"])
    import torch
    import torch.distributed as dist

    from snnbench.backends.torch import team

    rank, ranks, kind = given["rank"], given["ranks"], given["kind"]
    device = torch.device(kind, given["local"]) if kind == "cuda" else torch.device(kind)
    served = Rank(Path(given["file"]), rank, device, connection)
    connection.sendall(wire.DONE)
    store = dist.TCPStore(given["host"], given["port"], ranks, timeout=team.PATIENCE)
    team.join(store, rank, ranks, device)
    with suppress(EOFError, ConnectionError):
        served.serve()


class Rank:
    """One rank: the session of its part, and its last outputs."""

    def __init__(self, file: Path, rank: int, device: Any, connection: socket.socket) -> None:
        from snnbench.adapter import loading, reading

        self.rank, self.device, self.connection = rank, device, connection
        self.declared, self.module = reading.read(file), loading.load(file)
        self.session: Any = None
        self.outputs: Any = None
        self.saved: dict[int, Any] = {}
        self.is_elsewhere = False

    def serve(self) -> None:
        """Do each command, and answer. Raises EOFError or ConnectionError if rank 0 has gone."""
        while True:
            command, number = wire.byte(self.connection), wire.number(self.connection)
            if command == wire.DROP:
                self.saved.pop(number, None)
                continue
            content = self._content(command, number)
            try:
                following = self._do(command, number, content)
            except Exception as error:  # an adapter runs third-party code
                traceback.print_exc()
                self.connection.sendall(wire.failure(error))
                continue
            self.connection.sendall(wire.DONE)
            for piece in following:
                self.connection.sendall(piece)

    def _content(self, command: bytes, number: int) -> Any:
        """What follows a command: the text of a new case, or arrays, which go to the session's own."""
        if command == wire.NEW:
            return json.loads(wire.receive(self.connection, number))
        if command == wire.COMMANDS["load"]:
            wire.fill(self.connection, self.session.entering)
            wire.fill(self.connection, self.session.upstream)
        if command == wire.COMMANDS["cotangent"]:
            wire.fill(self.connection, self.session.upstream)
        return None

    def _do(self, command: bytes, number: int, content: Any) -> list[Any]:
        """Do a command; returns the bytes that follow the answer."""
        session, follows = self.session, []
        match command:
            case b"N":
                self._new(content)
            case b"L":
                session.put(session.entering, session.upstream)
            case b"C":
                session.put_cotangent(session.upstream)
            case b"I":
                self.outputs = session.inference(), None
            case b"F":
                self.saved[number] = session.forward()
                self.outputs = self.saved[number].detach(), None
            case b"B":
                self.outputs = self.outputs[0], session.backward(self.saved[number])
            case b"T":
                self.outputs = session.train()
            case b"A":
                follows = [piece for array in session.part_of_answer(*self.outputs) for piece in wire.sized(array)]
            case b"S":
                follows = [*wire.sized(self._seconds())]
        if session is not None:
            session.synchronise(None)
        return follows

    def _seconds(self) -> NDArray[np.float64]:
        """CPU seconds so far: busy and stolen on this rank's CPUs, 0 if rank 0 counts them itself; and its own."""
        cpus = os.sched_getaffinity(0)
        busy_s, stolen_s = cpu_time.busy_and_stolen_s(cpus=cpus) if self.is_elsewhere else (0.0, 0.0)
        return np.array([busy_s, stolen_s, time.process_time()])

    def _new(self, message: dict[str, Any]) -> None:
        import torch

        from snnbench import workloads
        from snnbench.backends.torch.ranks import PartSession

        case = workloads.decode(message["case"])
        torch.set_num_threads(case.threads)
        variant = self.declared.variants[message["variant"]]
        parts = workloads.of(case).builder(self.module)(case, [], message["variant"])
        self.session = PartSession(parts, variant, case, self.rank, self.device)
        self.is_elsewhere = message["machine"] != cpu_time.machine()


if __name__ == "__main__":
    main()
