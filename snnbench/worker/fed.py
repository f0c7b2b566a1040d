"""A fed case in one process: its loader, the reference of its data, the training step, and the loop of an epoch.

The feeding package and PyTorch are imported when a case needs them; only sessions of PyTorch are fed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from snnbench.cases.problem import generator
from snnbench.worker.messages import Announce, Note


class EpochSession:
    """The loader, the reference and the training step of a case in one process."""

    def __init__(self, case: Any, session: Any, feed: Any) -> None:
        from snnbench.backends.torch.training import Trainer
        from snnbench.feeding.reference import Reference

        self.case, self.session, self.feed = case, session, feed
        self.trainer = Trainer(session, case.steps)
        self.reference = Reference(case.source, case.time_steps)

    def order(self, number: int) -> list[int]:
        """The samples of an epoch, by number."""
        return [int(each) for each in generator(self.case, "order", number).permutation(self.case.samples)]

    def batches(self, order: Sequence[int]) -> list[list[int]]:
        """The samples of each batch of an epoch; the last ones, which fill no batch, are left out."""
        size = self.case.batch
        return [list(order[start : start + size]) for start in range(0, self.case.batches * size, size)]

    def placed(self, numbers: Sequence[int]) -> tuple[Any, Any, list[int]]:
        """A batch of the reference on the device, as a loader gives it."""
        frames, labels = self.reference.batch(numbers)
        return *self.trainer.placed(frames, labels), []

    def loop(self, trains: bool, in_process: bool) -> Any:
        """The loop of an epoch."""
        from snnbench.feeding.epoch import Loop

        session = self.session
        return Loop(
            session.device,
            session.dtype,
            lambda: session.synchronise(None),
            session.mark,
            session.elapsed_ns,
            self.trainer.step if trains else None,
            in_process,
        )

    def settings(self) -> dict[str, Any]:
        """The content of the data, and what was done before the clock."""
        return {"content": self.reference.digest(), "feeding": asdict(self.feed.prepared)}


@contextmanager
def fed(case: Any, session: Any, announce: Announce) -> Iterator[EpochSession]:
    """The loader and the rest, with the strategy's cache filled. Raises Unavailable, Unsupported, DatasetError.

    `announce` gets the progress of filling the cache.
    """
    from snnbench.feeding.feed import Feed

    def filling(done: int, count: int) -> None:
        announce(Note("samples cached", done, count))

    with Feed(case, session.layout.order.startswith("B"), session.device, filling) as feed:
        whole = EpochSession(case, session, feed)
        feed.prepare()
        yield whole
