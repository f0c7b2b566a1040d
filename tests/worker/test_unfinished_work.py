"""Tests of the wait for spinning threads."""

import threading
import time

import pytest

from snnbench.worker import unfinished_work

pytestmark = pytest.mark.quiet

MS = 1_000_000


def spin(seconds: float) -> None:
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass


def test_idle_process_is_settled_at_once() -> None:
    started = time.perf_counter()
    unfinished_work.settle()
    assert time.perf_counter() - started < unfinished_work.LONGEST_NS / 1e9


def test_settle_waits_for_a_spinning_thread() -> None:
    thread = threading.Thread(target=spin, args=(0.05,))
    thread.start()
    unfinished_work.settle()
    assert not thread.is_alive()


def test_settle_gives_up_on_endless_spinning() -> None:
    now = [0]

    def sleep(seconds: float) -> None:
        now[0] += int(seconds * 1e9)

    unfinished_work.settle(lambda: now[0], lambda: now[0], sleep)
    assert now[0] == unfinished_work.LONGEST_NS
