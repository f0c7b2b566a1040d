"""The team of ranks: ranks 1 and up, the sockets to them, and the process group.

A rank gets each command over its socket, and answers when its pass has ended; wire.py has the bytes. Ranks end with the
worker. In a Slurm job with several nodes, neighbours share a node, and the worker's own node has the first ranks.
"""

import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from snnbench.adapter.refusal import Incorrect, Unavailable, Unsupported
from snnbench.backends.torch import launch, wire
from snnbench.cases import cpu_time, nodes
from snnbench.cases.case import Case

Read = TypeVar("Read")
PATIENCE_S = 60.0
"""How long a rank may be silent; a rank that died is noticed at once."""
GRACE_S = 1.0
"""How long an error of this rank waits for the death of another that explains it."""
PATIENCE = timedelta(seconds=PATIENCE_S)
HOST = "127.0.0.1"
RAISED: dict[str, type[Exception]] = {
    "Unsupported": Unsupported,
    "Unavailable": Unavailable,
    "Incorrect": Incorrect,
    "MemoryError": MemoryError,
    "OutOfMemoryError": torch.OutOfMemoryError,
}
"""Errors of a rank that this process raises as its own, so that the cell gets their kind."""


class Team:
    """The other ranks, and this process as rank 0."""

    def __init__(self, case: Case, device: torch.device, file: str) -> None:
        self.ranks = ranks = case.processes
        self.nodes = min(nodes.count(), ranks)
        self._store = dist.TCPStore(HOST, 0, ranks, is_master=True, wait_for_workers=False, timeout=PATIENCE)
        self.others: dict[int, launch.Rank] = {}
        self._launch(case.threads, device, file)
        self._waiting = dict.fromkeys(self.others, 1)
        self.wait()  # every rank answers once before it joins, so that none waits for one that cannot
        try:
            join(self._store, 0, ranks, torch.device(device.type, 0) if device.type == "cuda" else device)
        except Exception as error:
            self.explain(error)
            raise
        for other in self.others.values():
            launch.limit(other.connection, PATIENCE_S)

    def _launch(self, threads: int, device: torch.device, file: str) -> None:
        """Start the other ranks, and pin this one to its share of the CPUs."""
        ranks = range(self.ranks)
        node_of = {rank: nodes.node_of(rank, self.ranks, self.nodes) for rank in ranks}
        start_s = PATIENCE.total_seconds()
        groups = [[rank for rank in ranks if node_of[rank] == node] for node in range(self.nodes)]
        common = {"file": file, "port": self._store.port, "ranks": self.ranks, "kind": device.type}
        given = {rank: {**common, "rank": rank, "local": groups[node_of[rank]].index(rank)} for rank in ranks}
        if far := [rank for rank in ranks if node_of[rank]]:
            names = nodes.names()
            there = {rank: {**given[rank], "threads": threads} for rank in far}
            self.others |= launch.on_nodes(there, {rank: names[node_of[rank]] for rank in far}, start_s)
        cpus, here = sorted(os.sched_getaffinity(0)), groups[0]
        shares = [cpus[rank * len(cpus) // len(here) : (rank + 1) * len(cpus) // len(here)] or cpus for rank in here]
        for rank in here[1:]:
            self.others[rank] = launch.locally({**given[rank], "host": HOST, "cpus": shares[rank]}, start_s)
        if self.ranks > 1:
            os.sched_setaffinity(0, shares[0])

    def start(self, case: Case, variant: str) -> None:
        """Have every rank build its part of a case."""
        text = json.dumps({"case": case.as_dict(), "variant": variant, "machine": cpu_time.machine()}).encode()
        for rank in self.others:
            self._send(rank, wire.numbered(wire.NEW, len(text)) + text)
        self.wait()

    def close(self) -> None:
        """End the other ranks, and leave the group."""
        for rank in self.others.values():
            rank.end()
        self.others = {}
        dist.destroy_process_group()

    def tell(self, name: str, number: int = 0) -> None:
        """Send a command to every rank; `number` is that of a forward pass."""
        for rank in self.others:
            self._send(rank, wire.numbered(wire.COMMANDS[name], number))

    def load(self, rank: int, *arrays: NDArray[np.float32]) -> None:
        """Send a rank its part of the currents and of the cotangent."""
        content = [np.ascontiguousarray(array) for array in arrays]
        self._send(rank, wire.numbered(wire.COMMANDS["load"]), *content)

    def load_cotangent(self, rank: int, cotangent: NDArray[np.float32]) -> None:
        """Send a rank its part of the cotangent."""
        self._send(rank, wire.numbered(wire.COMMANDS["cotangent"]), np.ascontiguousarray(cotangent))

    def drop(self, number: int) -> None:
        """Have every rank forget a forward pass; there is no answer."""
        with suppress(OSError):
            for rank in self.others.values():
                rank.connection.sendall(wire.numbered(wire.DROP, number))

    def wait(self) -> None:
        """Wait until every rank has done all its commands. Raises RuntimeError, or the refusal of a rank."""
        for rank in self.others:
            while self._waiting[rank]:
                answer = self._read(rank, wire.byte)
                self._waiting[rank] -= 1
                if answer == wire.FAILED:
                    kind, _, text = self._read(rank, wire.text).partition(" ")
                    whole = f"rank {rank} of {self.ranks}: {kind}: {text}"
                    raise RAISED[kind](text) if kind in RAISED else RuntimeError(whole)

    def fill(self, rank: int, array: NDArray[Any]) -> None:
        """Read the next array of a rank's answer. Raises RuntimeError if it has another size, or does not come."""
        length = self._read(rank, wire.number)
        if length != array.nbytes:
            raise RuntimeError(f"rank {rank} of {self.ranks} answered with {length} bytes: expected {array.nbytes}")
        self._read(rank, partial(wire.fill, array=array))

    def explain(self, error: Exception) -> None:
        """Raise RuntimeError about a rank that died; an error of this rank may only follow from it.

        A connection breaks a little before its process is known to have ended.
        """
        ends = time.monotonic() + GRACE_S
        while True:
            for rank, other in self.others.items():
                if other.has_gone():
                    raise RuntimeError(f"rank {rank} of {self.ranks} {other.ending()}") from error
            if time.monotonic() > ends:
                return
            time.sleep(0.01)

    def seconds(self) -> tuple[float, float, float]:
        """CPU seconds so far: busy and stolen on the other ranks' CPUs of other machines, and used by the ranks."""
        self.tell("seconds")
        self.wait()
        each = np.zeros((self.ranks, 3))
        for rank in self.others:
            self.fill(rank, each[rank])
        busy_s, stolen_s, own_s = each.sum(axis=0).tolist()
        return busy_s, stolen_s, own_s

    def _send(self, rank: int, *content: Any) -> None:
        try:
            for piece in content:
                self.others[rank].connection.sendall(piece)
        except BlockingIOError as error:
            raise RuntimeError(f"rank {rank} of {self.ranks} read nothing in {PATIENCE_S:g} s") from error
        except ConnectionError as error:
            raise RuntimeError(f"rank {rank} of {self.ranks} {self.others[rank].ending()}") from error
        self._waiting[rank] += 1

    def _read(self, rank: int, read: Callable[[socket.socket], Read]) -> Read:
        try:
            return read(self.others[rank].connection)
        except BlockingIOError as error:
            raise RuntimeError(f"rank {rank} of {self.ranks} gave no answer in {PATIENCE_S:g} s") from error
        except (EOFError, ConnectionError) as error:
            raise RuntimeError(f"rank {rank} of {self.ranks} {self.others[rank].ending()}") from error


_teams: dict[tuple[str, int], Team] = {}
"""The team of this process, by file and number of ranks: one at a time."""


def team(file: str, case: Case, device: torch.device) -> Team:
    """The team for this adapter and number of ranks, started at first use. Raises Unavailable."""
    here = nodes.most_on_a_node(case.processes, nodes.count())
    if device.type == "cuda" and torch.cuda.device_count() < here:
        raise Unavailable(f"{here} CUDA devices: this machine shows {torch.cuda.device_count()}")
    key = file, case.processes
    if key not in _teams:
        for other in list(_teams):
            _teams.pop(other).close()
        _teams[key] = Team(case, device, file)
    return _teams[key]


def join(store: dist.Store, rank: int, ranks: int, device: torch.device) -> None:
    """Make this process a rank of the group; `device` is its own."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=store,
        rank=rank,
        world_size=ranks,
        timeout=PATIENCE,
    )
