"""The team of ranks: the processes of ranks 1 and up, their pipes, the arrays that all share, and the process group.

A rank gets each command as a byte and a number, and answers with a byte when its pass has ended. Ranks end with the
worker, and the files of the arrays are gone as soon as every rank has mapped them.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from snnbench.adapter.refusal import Incorrect, Unavailable, Unsupported
from snnbench.work.case import Case

PATIENCE_S = 60.0
"""How long a rank may be silent; a rank that died is noticed at once."""
GRACE_S = 1.0
"""How long an error of this rank waits for the death of another that explains it."""
PATIENCE = timedelta(seconds=PATIENCE_S)
HOST = "127.0.0.1"
SHARED = Path("/dev/shm")
INPUT, COTANGENT, SPIKES, GRADIENT = "input", "cotangent", "spikes", "gradient"
COMMANDS = {"load": b"L", "inference": b"I", "forward": b"F", "backward": b"B", "train": b"T", "answer": b"A"}
NEW, DROP, DONE, FAILED = b"N", b"D", b".", b"!"
RAISED: dict[str, type[Exception]] = {
    "Unsupported": Unsupported,
    "Unavailable": Unavailable,
    "Incorrect": Incorrect,
    "MemoryError": MemoryError,
    "OutOfMemoryError": torch.OutOfMemoryError,
}
"""Errors of a rank that this process raises as its own, so that the cell gets their kind."""
NUMBER_BYTES = 8
"""The bytes of the number that follows each command and each failure."""


class Team:
    """The processes of ranks 1 and up, the files that all share, and this process as rank 0."""

    def __init__(self, ranks: int, device: torch.device, file: str) -> None:
        self.ranks = ranks
        self._store = dist.TCPStore(HOST, 0, ranks, is_master=True, wait_for_workers=False, timeout=PATIENCE)
        self.arrays: dict[str, NDArray[np.float32]] = {}
        self._waiting: dict[int, int] = dict.fromkeys(range(1, ranks), 0)
        self.processes, self._writers, self._readers = {}, {}, {}
        cpus = sorted(os.sched_getaffinity(0))
        shares = [cpus[rank * len(cpus) // ranks : (rank + 1) * len(cpus) // ranks] or cpus for rank in range(ranks)]
        for rank in range(1, ranks):
            (reader, answering), (listening, writer) = os.pipe(), os.pipe()
            cpus_of_rank = ",".join(map(str, shares[rank]))
            given = (self._store.port, rank, ranks, device.type, listening, answering, cpus_of_rank)
            self.processes[rank] = subprocess.Popen(
                [sys.executable, "-P", "-m", "snnbench.backends.torch.rank", file, *map(str, given)],
                pass_fds=(listening, answering),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
            )
            os.close(answering)
            os.close(listening)
            self._readers[rank], self._writers[rank] = reader, writer
        if ranks > 1:
            os.sched_setaffinity(0, shares[0])
        try:
            join(self._store, 0, ranks, device)
        except Exception as error:
            self.explain(error)
            raise

    def start(self, case: Case, variant: str) -> None:
        """Have every rank build its part of a case; the arrays are those of this case from now on."""
        with tempfile.TemporaryDirectory(prefix="snnbench-", dir=SHARED if SHARED.is_dir() else None) as folder:
            self.arrays = shared(Path(folder), case)
            for array in self.arrays.values():
                array[...] = 0
            text = json.dumps({"case": case.as_dict(), "variant": variant, "folder": folder}).encode()
            for rank in self._writers:
                self._send(rank, NEW + len(text).to_bytes(NUMBER_BYTES, "little") + text)
            self.wait()  # the files may go as soon as every rank has mapped them

    def close(self) -> None:
        """End the other ranks, and leave the group."""
        for rank, process in self.processes.items():
            os.close(self._writers[rank])
            os.close(self._readers[rank])
            process.kill()
            process.wait()
        self._writers, self._readers, self.processes = {}, {}, {}
        dist.destroy_process_group()

    def tell(self, name: str, number: int = 0) -> None:
        """Send a command to every rank; `number` is that of a forward pass."""
        for rank in self._writers:
            self._send(rank, COMMANDS[name] + number.to_bytes(NUMBER_BYTES, "little"))

    def drop(self, number: int) -> None:
        """Have every rank forget a forward pass; there is no answer."""
        with suppress(OSError):
            for writer in self._writers.values():
                os.write(writer, DROP + number.to_bytes(NUMBER_BYTES, "little"))

    def wait(self) -> None:
        """Wait until every rank has done all its commands. Raises RuntimeError, or the refusal of a rank."""
        for rank, reader in self._readers.items():
            while self._waiting[rank]:
                answer = self._read(rank, reader, 1)
                self._waiting[rank] -= 1
                if answer == FAILED:
                    length = int.from_bytes(self._read(rank, reader, NUMBER_BYTES), "little")
                    kind, _, text = self._read(rank, reader, length).decode().partition(" ")
                    whole = f"rank {rank} of {self.ranks}: {kind}: {text}"
                    raise RAISED[kind](text) if kind in RAISED else RuntimeError(whole)

    def explain(self, error: Exception) -> None:
        """Raise RuntimeError about a rank that died; an error of this rank may only follow from it.

        A connection breaks a little before its process is known to have ended.
        """
        ends = time.monotonic() + GRACE_S
        while True:
            for rank, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"rank {rank} of {self.ranks} {_ending(process.returncode)}") from error
            if time.monotonic() > ends:
                return
            time.sleep(0.01)

    def cpu_s(self) -> float:
        """CPU seconds of the other ranks."""
        ticks = 0.0
        for process in self.processes.values():
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / float(os.sysconf("SC_CLK_TCK"))

    def _send(self, rank: int, message: bytes) -> None:
        try:
            while message:
                message = message[os.write(self._writers[rank], message) :]
        except BrokenPipeError as error:
            self.processes[rank].wait()
            self.explain(error)
        self._waiting[rank] += 1

    def _read(self, rank: int, reader: int, count: int) -> bytes:
        content = b""
        while len(content) < count:
            if not select.select([reader], [], [], PATIENCE_S)[0]:
                raise RuntimeError(f"rank {rank} of {self.ranks} gave no answer in {PATIENCE_S:g} s")
            got = os.read(reader, count - len(content))
            if not got:
                process = self.processes[rank]
                process.wait()
                raise RuntimeError(f"rank {rank} of {self.ranks} {_ending(process.returncode)}")
            content += got
        return content


_teams: dict[tuple[str, int], Team] = {}
"""The team of this process, by file and number of ranks: one at a time."""


def team(file: str, case: Case, device: torch.device) -> Team:
    """The team for this adapter and number of ranks, started at first use. Raises Unavailable."""
    ranks = case.processes
    if device.type == "cuda" and torch.cuda.device_count() < ranks:
        raise Unavailable(f"{ranks} CUDA devices: this machine shows {torch.cuda.device_count()}")
    key = file, ranks
    if key not in _teams:
        for other in list(_teams):
            _teams.pop(other).close()
        _teams[key] = Team(ranks, device, file)
    return _teams[key]


def join(store: dist.Store, rank: int, ranks: int, device: torch.device) -> None:
    """Make this process a rank of the group."""
    if device.type == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        store=store,
        rank=rank,
        world_size=ranks,
        timeout=PATIENCE,
    )


def shared(folder: Path, case: Case) -> dict[str, NDArray[np.float32]]:
    """The whole arrays of a case, in files that all ranks map."""
    arrays: dict[str, NDArray[np.float32]] = {}
    for name in (INPUT, COTANGENT, SPIKES, GRADIENT):
        mode: Any = "r+" if (path := folder / name).exists() else "w+"
        arrays[name] = np.memmap(path, np.float32, mode, shape=case.shape)
    return arrays


def _ending(status: int) -> str:
    return f"died of signal {-status}" if status < 0 else f"ended with status {status}"
