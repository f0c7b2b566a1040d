"""A network divided among ranks: a process for each device, all joined by torch.distributed.

The worker is rank 0; team.py starts the others. Arrays go through shared memory, outside of the clock. A pass of the
session is a pass of all ranks: it starts with a command to each rank, and `synchronise` waits for an answer from each.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from snnbench import workloads
from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import Build
from snnbench.backends.torch.session import Network, Session
from snnbench.backends.torch.team import COTANGENT, GRADIENT, INPUT, SPIKES, Team, team
from snnbench.kernels.ranks import Split, part
from snnbench.work.answer import Answer
from snnbench.work.case import Case
from snnbench.work.problem import Problem


@dataclass(frozen=True, slots=True)
class Parts:
    """A layer that an adapter divides among ranks.

    `forward` maps a rank's part of the currents, by `split` of [T, B, N], to its spikes, once torch.distributed is
    initialised. `file` is the adapter's own `__file__`, which each rank loads.
    """

    split: Split
    forward: Callable[[torch.Tensor], torch.Tensor]
    file: str
    provider: str = "torch"

    def of(self, case: Case, rank: int) -> tuple[slice, slice, slice]:
        """The part of a rank. Raises Unsupported if there is too little for all ranks."""
        try:
            return part(self.split, case.shape, rank, case.processes)
        except ValueError as error:
            raise Unsupported(str(error)) from error


class PartSession(Session):
    """The pass of one rank on its part of shared arrays."""

    def __init__(self, parts: Parts, variant: Variant, case: Case, rank: int, device: torch.device) -> None:
        self.where = parts.of(case, rank)
        self.local = workloads.of(case).Problem(case)
        self.local.put(0, *(np.zeros(self._shape(case), np.float32) for _ in range(2)))
        super().__init__(lambda *_: Network(parts.forward, [], provider=parts.provider), variant, self.local, device)

    def put(self, entering: NDArray[np.float32], cotangent: NDArray[np.float32]) -> None:
        """Copy the rank's part of these whole arrays [T, B, N] in place."""
        self.local.put(0, entering[self.where], cotangent[self.where])
        Session.load(self, 0, 0)

    def write(self, spikes: Any, gradients: Any, into: dict[str, NDArray[np.float32]]) -> None:
        """Write the rank's answer into whole arrays."""
        answer = Session.answer(self, spikes, gradients)
        for name, array in ((SPIKES, answer.spikes), (GRADIENT, answer.input)):
            if array is not None:
                into[name][self.where] = array

    def touch(self, arrays: dict[str, NDArray[np.float32]]) -> None:
        """Write to the rank's part of the answers, so that no later pass waits for the system to find pages."""
        for name in (SPIKES, GRADIENT):
            arrays[name][self.where] = 0

    def _shape(self, case: Case) -> tuple[int, ...]:
        return tuple(len(range(*each.indices(size))) for each, size in zip(self.where, case.shape, strict=True))


@dataclass(frozen=True, slots=True)
class Saved:
    """This rank's result of a forward pass, and the number by which the other ranks know theirs."""

    spikes: Any
    number: int
    team: Team

    def __del__(self) -> None:
        self.team.drop(self.number)


class RankSession(PartSession):
    """The passes of all ranks, seen from rank 0."""

    def __init__(self, build: Build, variant: Variant, problem: Problem, device: torch.device) -> None:
        self.whole, case = problem, problem.case
        parts: Parts = build(case, [], variant.built_as)
        self.parts = parts
        self.team = team(parts.file, case, device)
        self.team.start(case, variant.built_as)
        self._numbers = itertools.count(1)
        own = torch.device(device.type, 0) if device.type == "cuda" else device
        super().__init__(parts, variant, case, 0, own)
        self.load(0, 0)

    def load(self, which: int, cotangent: int) -> None:
        """Put the numbered input and cotangent in place on every rank."""
        arrays = self.whole.input(which), self.whole.cotangent(cotangent)
        for name, array in zip((INPUT, COTANGENT), arrays, strict=True):
            self.team.arrays[name][...] = array
        self.team.tell("load")
        self.put(*arrays)
        self.synchronise(None)

    def inference(self) -> Any:
        """Spikes of every rank."""
        return self._together("inference", super().inference)

    def forward(self) -> Any:
        """Spikes of every rank, with their graphs."""
        number = next(self._numbers)
        return Saved(self._together("forward", super().forward, number), number, self.team)

    def backward(self, saved: Any) -> Any:
        """Gradients of every rank's part."""
        return self._together("backward", lambda: super(RankSession, self).backward(saved.spikes), saved.number)

    def spikes_of(self, saved: Any) -> Any:
        """The spikes of this rank."""
        return saved.spikes

    def train(self) -> Any:
        """Spikes and gradients of every rank."""
        return self._together("train", super().train)

    def synchronise(self, outputs: Any) -> None:
        """Wait for this device, and for every rank."""
        super().synchronise(outputs)
        self.team.wait()

    def mark(self) -> Any:
        """None: no device clock covers all devices."""
        return None

    def answer(self, spikes: Any, gradients: Any) -> Answer:
        """The whole answer."""
        self.team.tell("answer")
        self.write(spikes, gradients, self.team.arrays)
        self.team.wait()
        whole = {name: np.array(self.team.arrays[name]) for name in (SPIKES, GRADIENT)}
        return Answer(whole[SPIKES]) if gradients is None else Answer(whole[SPIKES], [], [], whole[GRADIENT])

    def static_bytes(self) -> int:
        """Currents and cotangent of all ranks."""
        return int(2 * np.prod(self.whole.case.shape) * self.input.element_size())

    def provider(self) -> str:
        """The adapter's provider, and the way of messages."""
        return f"{self.parts.provider}, {self.whole.case.processes} x {dist.get_backend()}"

    def others_s(self) -> float:
        """CPU seconds of the other ranks so far."""
        return self.team.cpu_s()

    def _together(self, name: str, run: Callable[[], Any], number: int = 0) -> Any:
        self.team.tell(name, number)
        try:
            return run()
        except Exception as error:
            self.team.explain(error)
            raise
