"""An epoch: a loop over batches with marks between its parts, and nothing else that would disturb it.

A mark is the host's clock, and on a card also an event in the card's own order of work. The card's events decide there,
because the host only starts its work. No mark waits for the card.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch

from snnbench.feeding.feed import Batch
from snnbench.feeding.samples import PARTS, Fault

WAITING, TRANSFER, FORWARD, BACKWARD, OPTIMISER = "waiting", "transfer", "forward", "backward", "optimiser"
SIGNAL_S = 0.2
"""How long a signal of a process's end may take to arrive."""
Mark = tuple[int, Any]
"""The host's nanoseconds, and the card's event or None."""


class LoaderError(Exception):
    """A process of the loader ended. The message says so in one line."""


@dataclass(slots=True)
class Epoch:
    """An epoch: its time, the time of its parts, and its answers.

    `parts_ns` add up to `wall_ns`, but for the loop's own statements. If batches are made in the loop's process, the
    parts of a loader are among them; else they are in `loader_ns`, the sum over the loader's processes. `frames` has
    some batches, by number.
    """

    wall_ns: int = 0
    first_ns: int = 0
    parts_ns: dict[str, int] = field(default_factory=dict)
    loader_ns: dict[str, int] = field(default_factory=dict)
    losses: list[torch.Tensor] = field(default_factory=list)
    outputs: list[torch.Tensor] = field(default_factory=list)
    labels: list[torch.Tensor] = field(default_factory=list)
    frames: dict[int, torch.Tensor] = field(default_factory=dict)


Step = Callable[[torch.Tensor, torch.Tensor, Callable[[str], None]], tuple[torch.Tensor, torch.Tensor]]
"""(frames, labels, mark) -> (loss, outputs); it calls mark(part) at the end of each part."""


@dataclass(frozen=True, slots=True)
class Loop:
    """How an epoch runs on a device. `step` is None for a loop that only loads; `in_process`: it loads itself."""

    device: torch.device
    dtype: torch.dtype
    synchronise: Callable[[], None]
    event: Callable[[], Any]
    elapsed_ns: Callable[[Any, Any], int]
    step: Step | None
    in_process: bool

    def run(self, batches: Iterable[Any], keep: Collection[int] = ()) -> Epoch:
        """Run one epoch. Raises DatasetError for a batch with a fault, Unavailable for a full disk under a cache, and
        LoaderError for a loader that ended."""
        try:
            return self._run_until_signal(batches, keep)
        except RuntimeError as error:  # PyTorch's handler of signals may raise once more, between any two statements
            raise _explained(error) from error

    def _run_until_signal(self, batches: Iterable[Any], keep: Collection[int]) -> Epoch:
        """Run one epoch; after an error, wait for the signal of a loader's process that ended."""
        try:
            return self._run(batches, keep)
        except (RuntimeError, EOFError, ConnectionError) as error:
            with suppress(RuntimeError):
                time.sleep(SIGNAL_S)
            raise _explained(error) from error

    def _run(self, batches: Iterable[Any], keep: Collection[int]) -> Epoch:
        epoch, marks = Epoch(), []
        notes = [0] * len(PARTS)

        def mark(part: str) -> None:
            marks.append((part, (time.perf_counter_ns(), self.event())))

        self.synchronise()
        mark("start")
        for number, (frames, labels, spent_ns) in enumerate(_without_faults(batches)):
            mark(WAITING)
            frames, labels = self._placed(frames, labels)
            mark(TRANSFER)
            if self.step:
                loss, outputs = self.step(frames, labels, mark)
                epoch.losses.append(loss)
                epoch.outputs.append(outputs)
            epoch.labels.append(labels)
            if number in keep:
                epoch.frames[number] = frames
            for part, ns in enumerate(spent_ns):
                notes[part] += ns
        mark(WAITING)
        self.synchronise()
        epoch.wall_ns = time.perf_counter_ns() - marks[0][1][0]
        epoch.first_ns = marks[min(1, len(marks) - 1)][1][0] - marks[0][1][0]
        epoch.parts_ns = self._parts(marks)
        self._share(epoch, notes)
        return epoch

    def _placed(self, frames: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if frames.is_sparse:
            frames = frames.to_dense()
        placed = frames.to(self.device, self.dtype, non_blocking=True).flatten(2)
        return placed, labels.to(self.device, non_blocking=True)

    def _parts(self, marks: list[tuple[str, Mark]]) -> dict[str, int]:
        parts: dict[str, int] = {}
        for (_, (before_ns, before)), (part, (after_ns, after)) in pairwise(marks):
            spent_ns = after_ns - before_ns if after is None else self.elapsed_ns(before, after)
            parts[part] = parts.get(part, 0) + spent_ns
        return parts

    def _share(self, epoch: Epoch, notes: list[int]) -> None:
        by_part = {part: ns for part, ns in zip(PARTS, notes, strict=True) if ns}
        if not self.in_process:
            epoch.loader_ns = by_part
            return
        epoch.parts_ns[WAITING] = max(0, epoch.parts_ns[WAITING] - sum(by_part.values()))
        epoch.parts_ns = by_part | epoch.parts_ns


def _explained(error: RuntimeError | EOFError | ConnectionError) -> Exception:
    """The error for a loader's process that ended, or that ended while it sent a batch; any other error as it is."""
    if isinstance(error, RuntimeError) and "DataLoader worker" not in str(error):
        return error
    line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    return LoaderError(f"a process of the loader ended, and its batches are lost: {line}")


def _without_faults(batches: Iterable[Any]) -> Iterator[Batch]:
    """The batches. A fault in place of a batch is raised."""
    for batch in batches:
        if isinstance(batch, Fault):
            raise batch.raised()
        yield batch
