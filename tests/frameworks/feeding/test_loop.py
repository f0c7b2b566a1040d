"""Tests of an epoch's loop: its marks neither wait for a device nor call it between the parts."""

from collections import Counter
from typing import Any

import torch

from snnbench.feeding.epoch import Loop
from snnbench.feeding.feed import Feed
from tests.small_epochs import SMALL


def test_loop_waits_before_and_after_an_epoch_only() -> None:
    calls: Counter[str] = Counter()

    def step(frames: Any, labels: Any, mark: Any) -> tuple[Any, Any]:
        assert calls["wait"] == 1, "the loop waited inside of the epoch"
        mark("forward")
        return frames.sum(), frames[0]

    def wait() -> None:
        calls["wait"] += 1

    def event() -> int:
        calls["event"] += 1
        return calls["event"]

    cpu = torch.device("cpu")
    with Feed(SMALL, False, cpu) as feed:
        feed.prepare()
        loop = Loop(cpu, torch.float32, wait, event, lambda start, end: (end - start) * 1000, step, True)
        epoch = loop.run(feed.loader(range(SMALL.samples)))
    assert calls["wait"] == 2
    assert calls["event"] == 2 + 3 * SMALL.batches, "one at the start, three for each batch, and one at the end"
    assert epoch.parts_ns["forward"] == 1000 * SMALL.batches
    assert len(epoch.losses) == SMALL.batches
