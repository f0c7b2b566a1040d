"""Tests of the kernel's counter of a process's retired instructions."""

import threading
import time
from itertools import count as numbers
from pathlib import Path

import pytest

from snnbench.adapter.loading import load
from snnbench.adapter.reading import read
from snnbench.backends.numpy import Backend
from snnbench.worker import instructions
from snnbench.worker.instructions import Count, counter, uncounted
from snnbench.worker.measurement import Measurement, Surroundings
from snnbench.worker.messages import Reply
from snnbench.workloads.linear_lif import builder
from tests.fakes import CASE, CORRECT, PHASES, request, write

SOFTWARE, TASK_CLOCK, NO_EVENT = 1, 1, 999


def spin(seconds: float) -> None:
    """Use a CPU for `seconds`."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_threads_that_start_later_are_counted() -> None:
    """Counts the task clock in nanoseconds, which every kernel has: many virtual machines cannot count instructions."""
    count = counter(SOFTWARE, TASK_CLOCK)
    if count is uncounted:
        pytest.skip("this kernel does not allow counting")
    before = count()
    spin(0.05)
    alone = count()
    thread = threading.Thread(target=spin, args=(0.2,))
    thread.start()
    thread.join()
    both = count()
    assert before is not None and alone is not None and both is not None
    assert alone - before >= 40_000_000
    assert both - alone >= 190_000_000


def test_uncountable_event_has_no_count() -> None:
    assert counter(SOFTWARE, NO_EVENT) is uncounted
    assert uncounted() is None


def test_unknown_processor_has_no_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions.platform, "machine", lambda: "riscv64")
    assert counter(SOFTWARE, TASK_CLOCK) is uncounted


def test_counted_instructions_grow_with_the_work() -> None:
    count = counter()
    first = count()
    if first is None:
        pytest.skip("this machine shows no counter of instructions")
    sum(range(100_000))
    second = count()
    sum(range(1_000_000))
    third = count()
    assert second is not None and third is not None
    assert 0 < second - first < third - second


def measured(folder: Path, count: Count) -> Reply:
    """The reply to a request for times, measured in this process with this counter."""
    path = write(folder, CORRECT)
    reply = Reply({})
    variant = read(path).variants["default"]
    Measurement(request("time"), Backend(CASE), builder(load(path)), lambda *_: None, variant, Surroundings(count)).run(
        reply
    )
    assert reply.outcome.status == "measured", reply.outcome
    return reply


def test_reply_has_the_instructions_of_every_repetition(tmp_path: Path) -> None:
    so_far = numbers(0, 1000)  # a thousand more at each call
    counted = measured(tmp_path, lambda: next(so_far))
    assert {name: counted.phases[name]["instructions"] for name in PHASES} == {name: [1000] * 3 for name in PHASES}
    assert all(phase["instructions"] == [] for phase in measured(tmp_path, uncounted).phases.values())
