"""Tests of the passes of `temporal_lif` without processes: the order of its messages under the rules of NCCL."""

from dataclasses import dataclass, field
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from snnbench.analysis.pipelines import pipeline_times
from snnbench.kernels import pipeline, ranks
from snnbench.kernels.passes import Layer
from snnbench.kernels.ranks import temporal_lif


@dataclass
class Message:
    """One end of a message: the n-th from `source` to `target`, in a queue of its rank."""

    key: tuple[int, int, int]
    queue: Any
    ready: float = 0.0
    finish: float | None = None


@dataclass
class Device:
    """A rank's program, as it issues it: "run", a Message to post, or a Message to wait for; and its progress."""

    program: list[tuple[str, Any]] = field(default_factory=list)
    queues: dict[Any, list[Message]] = field(default_factory=dict)
    position: int = 0
    now: float = 0.0


def recorded(monkeypatch: pytest.MonkeyPatch, rank: int, count: int, blocks: int, shared: bool) -> Device:
    """The program of a rank: forward and backward, without processes; one `shared` queue, or one for each pair."""
    device, numbers = Device(), dict[tuple[int, int], int]()

    def post(source: int, target: int) -> Any:
        number = numbers[source, target] = numbers.get((source, target), -1) + 1
        message = Message((source, target, number), None if shared else frozenset((source, target)))
        device.program.append(("post", message))
        return SimpleNamespace(wait=lambda: device.program.append(("wait", message)))

    fake = SimpleNamespace(
        get_rank=lambda link: rank,
        get_world_size=lambda link: count,
        get_backend=lambda link: "nccl",
        irecv=lambda tensor, group, group_src, tag: post(group_src, rank),
        isend=lambda tensor, group, group_dst, tag: post(rank, group_dst),
    )
    monkeypatch.setattr(ranks, "dist", fake)
    work = {"forward": pipeline.forward, "backward": pipeline.backward}

    def run(name: str, *arguments: Any) -> Any:
        device.program.append(("run", None))
        return work[name](*arguments)

    for name in work:
        monkeypatch.setattr(pipeline, name, partial(run, name))
    current = torch.ones(2, 1, blocks, requires_grad=True)
    spikes = temporal_lif(current, beta=0.9, threshold=1.0, kernel="torch", blocks=blocks)
    spikes.sum().backward()
    monkeypatch.undo()
    return device


def replayed(devices: list[Device], transfer: float) -> float:
    """The time until all programs end, with 1 for a block and `transfer` for a message; fails on a circle of waits.

    The rules of NCCL: the messages of a queue start in the order of their posts, each after the work posted before it,
    and when both of its ends can start; tags count for nothing.
    """
    ends: dict[tuple[int, int, int], list[tuple[Message, Message | None]]] = {}
    moved = True
    while moved:
        moved = False
        for device in devices:
            while device.position < len(device.program):
                action, message = device.program[device.position]
                if action == "wait" and message.finish is None:
                    break
                if action == "run":
                    device.now += 1.0
                elif action == "wait":
                    device.now = max(device.now, message.finish)
                else:
                    queue = device.queues.setdefault(message.queue, [])
                    message.ready = device.now
                    ends.setdefault(message.key, []).append((message, queue[-1] if queue else None))
                    queue.append(message)
                device.position += 1
                moved = True
        for pair in ends.values():
            before = [previous.finish for _, previous in pair if previous is not None]
            if len(pair) == 2 and pair[0][0].finish is None and None not in before:
                start = max([end.ready for end, _ in pair] + [time for time in before if time is not None])
                pair[0][0].finish = pair[1][0].finish = start + transfer
                moved = True
    assert all(device.position == len(device.program) for device in devices), "the ranks wait for one another"
    assert all(len(pair) == 2 for pair in ends.values())
    return max(device.now for device in devices)


@pytest.mark.parametrize(("count", "blocks"), [(2, 1), (2, 6), (3, 5), (4, 12), (5, 2)])
def test_messages_match_by_order_without_a_deadlock(monkeypatch: pytest.MonkeyPatch, count: int, blocks: int) -> None:
    """Two passes of ranks - 1 messages and of blocks + ranks - 1 blocks, as the model says: other messages travel
    during a block. This holds with a communicator for each pair and with one for all.
    """
    for transfer, shared in product((0.0, 0.5), (False, True)):
        expected = 2 * pipeline_times(float(blocks * count), transfer, count, blocks).filled
        devices = [recorded(monkeypatch, rank, count, blocks, shared) for rank in range(count)]
        assert replayed(devices, transfer) == pytest.approx(expected)


@pytest.mark.parametrize(("gradient", "keep"), [(True, "bfloat16"), (False, "")])
def test_only_a_pass_with_gradients_keeps_values(monkeypatch: pytest.MonkeyPatch, gradient: bool, keep: str) -> None:
    monkeypatch.setattr(ranks, "dist", SimpleNamespace(get_rank=lambda link: 0, get_world_size=lambda link: 1))
    layers, real = [], pipeline.forward

    def spy(layer: Layer) -> Any:
        layers.append(layer)
        return real(layer)

    monkeypatch.setattr(pipeline, "forward", spy)
    current = torch.ones(3, 2, 4, requires_grad=gradient)
    spikes = temporal_lif(current, beta=0.9, threshold=1.0, keep="bfloat16", kernel="torch", blocks=2)
    assert [layer.keep for layer in layers] == [keep, keep] and spikes.requires_grad is gradient
