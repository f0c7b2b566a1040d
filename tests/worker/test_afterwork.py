"""Tests of work after the clock: the worker waits for spinning threads, and finds missing answers."""

import threading
import time

import pytest

from snnbench.worker import afterwork
from snnbench.worker.afterwork import LEAST_NS, complaint

pytestmark = pytest.mark.quiet

MS = 1_000_000


def spin(seconds: float) -> None:
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass


def test_idle_process_is_settled_at_once() -> None:
    started = time.perf_counter()
    afterwork.settle()
    assert time.perf_counter() - started < afterwork.LONGEST_NS / 1e9


def test_settle_waits_for_a_spinning_thread() -> None:
    thread = threading.Thread(target=spin, args=(0.05,))
    thread.start()
    afterwork.settle()
    assert not thread.is_alive()


def test_settle_gives_up_on_endless_spinning() -> None:
    now = [0]

    def sleep(seconds: float) -> None:
        now[0] += int(seconds * 1e9)

    afterwork.settle(lambda: now[0], lambda: now[0], sleep)
    assert now[0] == afterwork.LONGEST_NS


@pytest.mark.parametrize(
    ("reading_ns", "pass_ns", "expected"),
    [
        ([LEAST_NS] * 3, 5 * MS, None),
        ([LEAST_NS + 1] * 3, 5 * MS, "17% of the work"),
        ([9 * MS, 0, 0], 5 * MS, None),  # a late answer by chance
        ([9 * MS, 0, 9 * MS], 5 * MS, "64% of the work"),  # most answers are late
        ([9 * MS] * 3, 90 * MS, None),
        ([10 * MS] * 3, 90 * MS, "10% of the work"),
        ([], 5 * MS, None),
    ],
)
def test_slow_reading_of_an_answer_is_reported(reading_ns: list[int], pass_ns: float, expected: str | None) -> None:
    message = complaint("train", reading_ns, pass_ns)
    assert message is None if expected is None else message is not None and message.endswith(expected)
