"""A rank on another node: the process that srun starts there. It connects to rank 0, runs the rank, and ends it.

The rank itself may be stopped, or busy without an end. So this process waits for the end of the connection in its
place, and no rank outlives rank 0.
"""

import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from snnbench.adapter.refusal import Unavailable
from snnbench.backends.torch import wire

TOKEN = "SNNBENCH_RANK_TOKEN"
"""The environment variable with the text by which rank 0 knows its ranks."""
ADDRESS = "SLURM_LAUNCH_NODE_IPADDR"
"""The environment variable in which srun names its own node's address."""
GLOO = "GLOO_SOCKET_IFNAME"
CONNECT_S = 30.0
CACHES = ("_CACHE_DIR", "_CACHE_PATH")
SIOCGIFADDR = 0x8915
SIGNALLED = 128
"""A status above this one is that of a process which died of a signal."""


def main() -> int:
    """Run the rank until it or rank 0 ends; returns its status, as a shell does."""
    given = json.loads(sys.argv[1])
    connection = socket.create_connection((os.environ[ADDRESS], given.pop("listening_at")), CONNECT_S)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(os.environ.pop(TOKEN).encode() + given["rank"].to_bytes(wire.NUMBER_BYTES, "little"))
    use_interface_of(connection)
    threads, local = given.pop("threads"), given["local"]
    cpus = sorted(os.sched_getaffinity(0))[local * threads : (local + 1) * threads]
    if len(cpus) < threads:
        connection.sendall(wire.failure(Unavailable(f"{len(cpus)} CPUs for a rank on its node: expected {threads}")))
        return 1
    given |= {"host": connection.getpeername()[0], "cpus": cpus, "descriptor": connection.fileno()}
    with tempfile.TemporaryDirectory(prefix="snnbench-", ignore_cleanup_errors=True) as empty:
        caches = {name: empty for name, path in os.environ.items() if name.endswith(CACHES) and not Path(path).exists()}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "snnbench.backends.torch.rank", json.dumps(given)],
            pass_fds=(connection.fileno(),),
            stdin=subprocess.DEVNULL,
            env={**os.environ, **caches},
        )
        return _status(process, connection)


def _status(process: "subprocess.Popen[bytes]", connection: socket.socket) -> int:
    """Wait until the rank ends, or rank 0, which is no failure of the rank."""
    descriptor = os.pidfd_open(process.pid)
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    poller.register(connection, select.POLLRDHUP)
    ended = descriptor in dict(poller.poll())
    process.kill()
    status = process.wait()
    return (status if status >= 0 else SIGNALLED - status) if ended else 0


def use_interface_of(connection: socket.socket) -> None:
    """Have gloo use the network of this connection, unless the user chose one. A host's name may be its loopback's."""
    address = connection.getsockname()[0]
    for _, name in socket.if_nameindex():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, suppress(OSError):
            answer = fcntl.ioctl(asking, SIOCGIFADDR, struct.pack("256s", name.encode()))
            if socket.inet_ntoa(answer[20:24]) == address:
                os.environ.setdefault(GLOO, name)


if __name__ == "__main__":
    sys.exit(main())
