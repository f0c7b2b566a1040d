"""The start of ranks: as processes of this machine, or on the other nodes of a Slurm job through srun."""

import hmac
import json
import os
import secrets
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from snnbench.backends.torch import remote, wire

SRUN = ("srun", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mpi=none", "--export=ALL")
"""A step of one task that shares the job's resources. The rank pins itself to its CPUs."""
GREETING_S = 5.0
LOOK_EVERY_S = 0.05
LONGEST_END_S = 10.0
"""How long a process may take to end after its connection."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Another rank: its process here, which is srun's for a rank on another node, and the socket to it."""

    process: "subprocess.Popen[bytes]"
    connection: socket.socket
    remote: bool

    def has_gone(self) -> bool:
        """Whether the rank has ended, or its connection has."""
        if self.process.poll() is not None:
            return True
        poller = select.poll()
        poller.register(self.connection, select.POLLRDHUP)
        return bool(poller.poll(0))

    def ending(self) -> str:
        """How the rank ended, as the end of a sentence. Waits until its process has."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(LONGEST_END_S)
        return _ending(self.process.returncode, self.remote)

    def end(self) -> None:
        """End the rank; one on another node ends with its connection."""
        self.connection.close()
        if self.remote:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(LONGEST_END_S)
        self.process.kill()
        self.process.wait()


def locally(given: Mapping[str, Any], patience_s: float) -> Rank:
    """Start a rank on this machine. `given` are its arguments, but for the socket's descriptor.

    It may be silent for `patience_s` seconds.
    """
    own, other = socket.socketpair()
    with other:
        text = json.dumps({**given, "descriptor": other.fileno()})
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "snnbench.backends.torch.rank", text],
            pass_fds=(other.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
        )
    limit(own, patience_s)
    return Rank(process, own, remote=False)


def on_nodes(given: Mapping[int, Mapping[str, Any]], nodes: Mapping[int, str], patience_s: float) -> dict[int, Rank]:
    """Start these ranks, each on its node. `given` are their arguments, but for what remote.py adds.

    Raises RuntimeError if one ends, or does not connect in `patience_s` seconds.
    """
    token = secrets.token_hex()
    processes, ranks = {}, {}
    with socket.create_server(("", 0), backlog=len(nodes)) as server:
        for rank, node in nodes.items():
            text = json.dumps({**given[rank], "listening_at": server.getsockname()[1]})
            processes[rank] = subprocess.Popen(
                [*SRUN, f"--nodelist={node}", sys.executable, "-P", "-m", "snnbench.backends.torch.remote", text],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                env={**os.environ, remote.TOKEN: token},
            )
        ends = time.monotonic() + patience_s
        while missing := [rank for rank in nodes if rank not in ranks]:
            if select.select([server], [], [], LOOK_EVERY_S)[0]:
                connection, _ = server.accept()
                rank = _greeted(connection, token)
                if rank in missing:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    limit(connection, patience_s)
                    remote.use_interface_of(connection)
                    ranks[rank] = Rank(processes[rank], connection, remote=True)
                else:
                    connection.close()
                continue  # a rank that has ended may have connected before
            for rank in missing:
                if (status := processes[rank].poll()) is not None:
                    raise RuntimeError(f"rank {rank} on node {nodes[rank]} {_ending(status, True)}")
            if time.monotonic() > ends:
                raise RuntimeError(f"rank {missing[0]} on node {nodes[missing[0]]} did not connect in {patience_s:g} s")
    return ranks


def _greeted(connection: socket.socket, token: str) -> int:
    """The rank that connects here; 0 for a stranger."""
    connection.settimeout(GREETING_S)
    with suppress(OSError, EOFError):
        if hmac.compare_digest(wire.receive(connection, len(token)), token.encode()):
            return wire.number(connection)
    return 0


def limit(connection: socket.socket, patience_s: float) -> None:
    """Give each read and write of a socket the kernel's own timeout: Python's takes one more call."""
    connection.settimeout(None)
    timeout = struct.pack("ll", int(patience_s), int(patience_s % 1 * 1e6))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, timeout)


def _ending(status: int | None, is_remote: bool) -> str:
    if status is None:
        return "has gone"
    if status < 0 or (is_remote and status > remote.SIGNALLED):
        return f"died of signal {-status if status < 0 else status - remote.SIGNALLED}"
    return f"ended with status {status}"
