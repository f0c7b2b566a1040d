"""Tests of team.h: a caller whose helpers are late works alone for a while."""

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulator import needed

TEAM = Path(__file__).parents[2] / "snnbench" / "kernels" / "team.h"
SOURCE = """
#include "team.h"
static pthread_t caller;
static _Atomic int64_t helped;
static void task(const void *work, int64_t number) {
  if (pthread_equal(pthread_self(), caller)) usleep(1000);
  else ++helped;
}
int64_t tasks_of_helper(int64_t alone_ns) {
  caller = pthread_self();
  helped = 0;
  team.alone_until = now_ns() + alone_ns;
  run_tasks(task, 0, 40, 4, 2);
  return helped;
}
int64_t alone_until(int64_t began, int64_t worked, int64_t ended) {
  note_delay(began, worked, ended);
  return team.alone_until;
}
"""
MS = 1_000_000


@pytest.fixture
def team(tmp_path: Path) -> ctypes.CDLL:
    (tmp_path / "calls.c").write_text(SOURCE)
    command = [needed("gcc"), "-O2", "-shared", "-fPIC", f"-I{TEAM.parent}", "calls.c", "-o", "calls.so", "-lpthread"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return ctypes.CDLL(str(tmp_path / "calls.so"))


@pytest.fixture
def alone_until(team: ctypes.CDLL) -> Callable[..., int]:
    team.alone_until.restype = ctypes.c_int64
    return lambda *times: int(team.alone_until(*map(ctypes.c_int64, times)))


def test_delay_is_waiting_for_longer_than_working(alone_until: Callable[..., int]) -> None:
    start = 1000 * MS
    for waited in (0, MS // 10, 2 * MS - 1):
        assert alone_until(start, start + 2 * MS, start + 2 * MS + waited) == 0
    assert alone_until(start, start, start + MS // 10) == 0, "an interrupt may take that long"
    assert alone_until(start, start + 2 * MS, start + 5 * MS) == start + 5 * MS + 4 * 3 * MS


def test_time_alone_doubles_if_the_next_attempt_is_late(alone_until: Callable[..., int]) -> None:
    end, alone = 1000 * MS, 4 * MS
    assert alone_until(end - MS, end - MS, end) == end + alone
    for _ in range(8):
        began = end + alone + alone - 1
        end, alone = began + MS, min(2 * alone, 100 * MS)
        assert alone_until(began, began, end) == end + alone
    began = end + 2 * alone
    assert alone_until(began, began, began + MS) == began + MS + 4 * MS, "a long time after the last delay"


def test_caller_alone_leaves_no_task_to_helpers(team: ctypes.CDLL) -> None:
    assert team.tasks_of_helper(ctypes.c_int64(10_000 * MS)) == 0
    assert any(team.tasks_of_helper(ctypes.c_int64(0)) for _ in range(50))
