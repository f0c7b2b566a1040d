"""The process of a rank: it builds its part of each problem, and runs a pass at each command of rank 0."""

import ctypes
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve rank 0 until it goes."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    file, port, rank, ranks, kind, listening, answering, cpus = sys.argv[1:]
    os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    import torch
    import torch.distributed as dist

    from snnbench.backends.torch import team

    device = torch.device(kind, int(rank)) if kind == "cuda" else torch.device(kind)
    store = dist.TCPStore(team.HOST, int(port), int(ranks), timeout=team.PATIENCE)
    team.join(store, int(rank), int(ranks), device)
    Rank(Path(file), int(rank), device, int(listening), int(answering)).serve()


class Rank:
    """One rank: the session of its part, and its last outputs."""

    def __init__(self, file: Path, rank: int, device: Any, listening: int, answering: int) -> None:
        from snnbench.adapter import loading, reading

        self.rank, self.device = rank, device
        self.listening, self.answering = listening, answering
        self.declared, self.module = reading.read(file), loading.load(file)
        self.session: Any = None
        self.arrays: Any = None
        self.outputs: Any = None
        self.saved: dict[int, Any] = {}

    def serve(self) -> None:
        """Do each command, and answer with a byte, or with the error."""
        from snnbench.backends.torch.team import DONE, DROP, FAILED, NUMBER_BYTES

        while command := os.read(self.listening, 1):
            number = int.from_bytes(self._read(NUMBER_BYTES), "little")
            if command == DROP:
                self.saved.pop(number, None)
                continue
            try:
                self._do(command, number)
                os.write(self.answering, DONE)
            except Exception as error:  # an adapter runs third-party code
                traceback.print_exc()
                text = f"{type(error).__name__} {str(error).strip() or type(error).__name__}".encode()[:2000]
                os.write(self.answering, FAILED + len(text).to_bytes(NUMBER_BYTES, "little") + text)

    def _do(self, command: bytes, number: int) -> None:
        session = self.session
        match command:
            case b"N":
                self._new(json.loads(self._read(number)))
            case b"L":
                session.put(self.arrays["input"], self.arrays["cotangent"])
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
                session.write(*self.outputs, self.arrays)
        if session is not None:
            session.synchronise(None)

    def _read(self, count: int) -> bytes:
        content = b""
        while len(content) < count:
            content += os.read(self.listening, count - len(content))
        return content

    def _new(self, message: dict[str, Any]) -> None:
        import torch

        from snnbench import workloads
        from snnbench.backends.torch.ranks import PartSession
        from snnbench.backends.torch.team import shared

        case = workloads.decode(message["case"])
        torch.set_num_threads(case.threads)
        variant = self.declared.variants[message["variant"]]
        parts = workloads.of(case).builder(self.module)(case, [], message["variant"])
        self.arrays = shared(Path(message["folder"]), case)
        self.session = PartSession(parts, variant, case, self.rank, self.device)
        self.session.touch(self.arrays)


if __name__ == "__main__":
    main()
