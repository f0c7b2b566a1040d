"""A network divided among ranks: a process for each device, all joined by torch.distributed.

The worker is rank 0; team.py starts the others. Each rank gets its part of the arrays over its socket, outside of the
clock. A pass of the session is a pass of all ranks: it starts with a command to each rank, and `synchronise` waits for
an answer from each.
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
from snnbench.backends.torch.network import Network
from snnbench.backends.torch.session import Session
from snnbench.backends.torch.team import Team, team
from snnbench.cases.answer import Answer
from snnbench.cases.case import Case
from snnbench.cases.problem import Problem
from snnbench.kernels.parts import Split, part


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
    """The pass of one rank on its part of the arrays."""

    def __init__(self, parts: Parts, variant: Variant, case: Case, rank: int, device: torch.device) -> None:
        self.where = parts.of(case, rank)
        shape = [len(range(*each.indices(size))) for each, size in zip(self.where, case.shape, strict=True)]
        self.entering, self.upstream = (np.zeros(shape, np.float32) for _ in range(2))
        self.local = workloads.of(case).Problem(case)
        self.local.put(0, self.entering, self.upstream)
        super().__init__(lambda *_: Network(parts.forward, [], provider=parts.provider), variant, self.local, device)

    def put(self, entering: NDArray[np.float32], cotangent: NDArray[np.float32]) -> None:
        """Copy the rank's part of the currents and of the cotangent in place."""
        self.local.put(0, entering, cotangent)
        Session.load(self, 0, 0)

    def put_cotangent(self, cotangent: NDArray[np.float32]) -> None:
        """Copy the rank's part of the cotangent in place."""
        self.local.put(0, self.entering, cotangent)
        Session.load_cotangent(self, 0)

    def part_of_answer(self, spikes: Any, gradients: Any) -> list[NDArray[Any]]:
        """The rank's spikes and, if there are gradients, the gradient of its currents."""
        answer = Session.answer(self, spikes, gradients)
        return [array for array in (answer.spikes, answer.input) if array is not None]


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
        self.parts, self.split = parts, parts.split
        self.team = team(parts.file, case, device)
        self.team.start(case, variant.built_as)
        self._numbers, self._arrays = itertools.count(1), dict[tuple[int, int], NDArray[Any]]()
        self.parts_of = {rank: parts.of(case, rank) for rank in self.team.others}
        own = torch.device(device.type, 0) if device.type == "cuda" else device
        super().__init__(parts, variant, case, 0, own)
        self.load(0, 0)

    def load(self, which: int, cotangent: int) -> None:
        """Put the numbered input and cotangent in place on every rank."""
        entering, upstream = self.whole.input(which), self.whole.cotangent(cotangent)
        for rank, where in self.parts_of.items():
            self.team.load(rank, entering[where], upstream[where])
        self.put(entering[self.where], upstream[self.where])
        self.synchronise(None)

    def load_cotangent(self, cotangent: int) -> None:
        """Put the numbered cotangent in place on every rank."""
        upstream = self.whole.cotangent(cotangent)
        for rank, where in self.parts_of.items():
            self.team.load_cotangent(rank, upstream[where])
        self.put_cotangent(upstream[self.where])
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
        """The whole answer, in arrays that the next answer overwrites.

        New arrays would make the first of two readings the slower one, so an answer would seem to come late: the second
        reading would find the memory that the first one has freed.
        """
        self.team.tell("answer")
        own = self.part_of_answer(spikes, gradients)
        self.team.wait()
        whole = [self._array(number, 0, self.whole.case.shape, array.dtype) for number, array in enumerate(own)]
        for array, part_of_it in zip(whole, own, strict=True):
            array[self.where] = part_of_it
        for rank, where in self.parts_of.items():
            for number, array in enumerate(whole):
                received = self._array(number, rank, array[where].shape, array.dtype)
                self.team.fill(rank, received)
                array[where] = received
        return Answer(whole[0]) if gradients is None else Answer(whole[0], [], [], whole[1])

    def _array(self, number: int, rank: int, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """The array for one array of an answer: a rank's part, or for rank 0 the whole."""
        if (number, rank) not in self._arrays:
            self._arrays[number, rank] = np.empty(shape, dtype)
        return self._arrays[number, rank]

    def static_bytes(self) -> int:
        """Currents and cotangent of all ranks."""
        return int(2 * np.prod(self.whole.case.shape) * self.input.element_size())

    def provider(self) -> str:
        """The adapter's provider, and the way of messages."""
        nodes = f" on {self.team.nodes} nodes" if self.team.nodes > 1 else ""
        return f"{self.parts.provider}, {self.whole.case.processes} x {dist.get_backend()}{nodes}"

    def others_s(self) -> tuple[float, float, float]:
        """CPU seconds so far: busy and stolen on CPUs of other machines, where ranks run, and used by other ranks."""
        return self.team.seconds()

    def _together(self, name: str, run: Callable[[], Any], number: int = 0) -> Any:
        self.team.tell(name, number)
        try:
            return run()
        except Exception as error:
            self.team.explain(error)
            raise
