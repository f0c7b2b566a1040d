"""Work after the clock: what a process does while it should be idle."""

import threading
import time

import pytest

from snnbench import afterwork
from snnbench.afterwork import LEAST_NS, LEAST_READING_NS, complaint

MS = 1_000_000


def spin(seconds: float) -> None:
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        pass


def test_an_idle_process_is_idle_at_once() -> None:
    started = time.perf_counter()
    assert afterwork.cpu_ns() < 4 * MS
    assert time.perf_counter() - started < 1


def test_a_thread_that_works_on_is_waited_for_and_counted() -> None:
    thread = threading.Thread(target=spin, args=(0.1,))
    thread.start()
    used_ns = afterwork.cpu_ns()
    assert not thread.is_alive()
    assert used_ns > 20 * MS, "beside other work on the machine, too"


def test_waiting_ends_where_work_does_not() -> None:
    now = [0]

    def sleep(seconds: float) -> None:
        now[0] += int(seconds * 1e9)

    assert afterwork.cpu_ns(lambda: now[0], lambda: now[0], sleep) == afterwork.LONGEST_NS


@pytest.mark.parametrize(
    ("seen_ns", "spinning_ns", "pass_ns", "expected"),
    [
        ([LEAST_NS], [], 1 * MS, None),
        ([LEAST_NS + 1], [], 1 * MS, "89% of its work"),
        ([30 * MS, 5 * MS], [], 1 * MS, None),  # the least of what was seen
        ([30 * MS, 30 * MS], [2 * MS, 25 * MS], 1 * MS, None),  # and the most that threads spin
        ([100 * MS], [], 1000 * MS, None),
        ([200 * MS], [], 1000 * MS, "17% of its work"),
        ([], [], 1000 * MS, None),
    ],
)
def test_what_exceeds_spinning_by_a_tenth_of_the_pass_is_found_out(
    seen_ns: list[int], spinning_ns: list[int], pass_ns: float, expected: str | None
) -> None:
    said = complaint("train", seen_ns, spinning_ns, [], pass_ns)
    assert said is None if expected is None else said is not None and said.endswith(expected)


@pytest.mark.parametrize(
    ("reading_ns", "expected"),
    [([LEAST_READING_NS], None), ([LEAST_READING_NS + 1], "computed when it was read"), ([9 * MS, 0], None)],
)
def test_an_answer_that_takes_its_time_to_be_read_is_found_out(reading_ns: list[int], expected: str | None) -> None:
    said = complaint("train", [], [], reading_ns, 5 * MS)
    assert said is None if expected is None else said is not None and expected in said
