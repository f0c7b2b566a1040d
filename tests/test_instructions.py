"""Instructions: the kernel's counter of what a process retired."""

import threading
import time

import pytest

from snnbench import instructions
from snnbench.instructions import counter, uncounted

SOFTWARE, TASK_CLOCK, NO_EVENT = 1, 1, 999


def spin(seconds: float) -> None:
    """Use a CPU for so long."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_threads_that_start_later_are_counted() -> None:
    """By the clock of tasks, in nanoseconds, which every kernel has: many virtual machines count no instructions."""
    count = counter(SOFTWARE, TASK_CLOCK)
    if count is uncounted:
        pytest.skip("this kernel lets nobody count")
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


def test_what_the_kernel_does_not_count_has_no_number() -> None:
    assert counter(SOFTWARE, NO_EVENT) is uncounted
    assert uncounted() is None


def test_a_processor_whose_system_call_is_not_known_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions.platform, "machine", lambda: "riscv64")
    assert counter(SOFTWARE, TASK_CLOCK) is uncounted


def test_instructions_that_are_counted_grow_with_the_work() -> None:
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
