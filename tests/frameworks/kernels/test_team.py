"""Tests of team.h: which threads take tasks.

A call after a late parallel region has helpers for a while, a caller with late helpers works alone for a while, and
helpers leave a shared core.
"""

import ctypes
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulator import needed

TEAM = Path(__file__).parents[3] / "snnbench" / "kernels" / "team.h"
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
  team.alone.until = now_ns() + alone_ns;
  team.apart.until = INT64_MAX;
  run_tasks(task, 0, 40, 4, 2);
  return helped;
}
static _Atomic int64_t runs, in_regions;
static void count(const void *work, int64_t number) {
  ++runs;
  in_regions += omp_in_parallel();
  usleep(200);
}
/* The tasks of a call with two threads that run in a parallel region; -1 if not all tasks ran. */
int64_t tasks_in_region(int openmp_threads, int64_t apart_ns, int is_child) {
  omp_set_num_threads(openmp_threads);
  runs = in_regions = 0;
  team.process = getpid();
  team.is_child = is_child;
  team.alone.until = 0;
  team.apart.until = now_ns() + apart_ns;
  run_tasks(count, 0, 40, 4, 2);
  return runs == 40 ? in_regions : -1;
}
int64_t apart_until(int64_t done, int64_t ended) {
  note_late_region(done, ended);
  return team.apart.until;
}
static void uneven(const void *work, int64_t number) {
  if (number) usleep(5000);
}
/* How many of some regions were late. One of two tasks is long. */
int64_t late_regions(int64_t regions) {
  int64_t late = 0;
  omp_set_num_threads(2);
  while (regions--) {
    team.apart = team.alone = (pause_t){0};
    run_tasks(uneven, 0, 2, 2, 2);
    late += !!team.apart.until;
  }
  return late;
}
int64_t alone_until(int64_t began, int64_t worked, int64_t ended) {
  note_delay(began, worked, ended);
  return team.alone.until;
}
static _Atomic int ended;
static void *keep_busy(void *unused) {
  while (!ended) pause_briefly();
  return unused;
}
int64_t crowded(int64_t looks, int is_shared) {
  pthread_t other;
  int64_t seen = 0;
  ended = !is_shared;
  pthread_create(&other, 0, keep_busy, 0);
  for (int64_t look = 0; look < looks; ++look) {
    team.crowded.until = 0;
    seen += is_crowded();
  }
  ended = 1;
  pthread_join(other, 0);
  return seen;
}
int is_crowded_until(int64_t later_ns) {
  team.crowded.until = now_ns() + later_ns;
  return is_crowded();
}
"""
MS = 1_000_000


@pytest.fixture
def team(tmp_path: Path) -> ctypes.CDLL:
    (tmp_path / "calls.c").write_text(SOURCE)
    command = [
        needed("gcc"),
        "-O2",
        "-fopenmp",
        "-shared",
        "-fPIC",
        f"-I{TEAM.parent}",
        "calls.c",
        "-o",
        "calls.so",
        "-lpthread",
    ]
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


def test_tasks_run_in_a_parallel_region_of_all_threads(team: ctypes.CDLL) -> None:
    assert team.tasks_in_region(2, ctypes.c_int64(0), 0) == 40
    assert team.tasks_in_region(3, ctypes.c_int64(0), 0) == 0, "a smaller region would end a thread"


def test_child_after_a_fork_opens_no_parallel_region(team: ctypes.CDLL) -> None:
    assert team.tasks_in_region(2, ctypes.c_int64(0), 1) == 0


def test_helpers_take_the_tasks_after_a_late_region(team: ctypes.CDLL) -> None:
    assert team.tasks_in_region(2, ctypes.c_int64(10_000 * MS), 0) == 0
    team.apart_until.restype = ctypes.c_int64

    def late(done: int, ended: int) -> int:
        return int(team.apart_until(ctypes.c_int64(done), ctypes.c_int64(ended)))

    start, apart = 10**12 * MS, 200 * MS
    assert late(start, start + MS // 10) < start, "an interrupt may take that long"
    end = start + MS
    assert late(start, end) == end + apart
    for _ in range(8):
        began = end + apart + 1
        end, apart = began + MS, min(2 * apart, 5000 * MS)
        assert late(began, end) == end + apart


def test_long_task_does_not_make_a_region_late(team: ctypes.CDLL) -> None:
    assert team.late_regions(ctypes.c_int64(20)) < 10


def test_helper_notices_a_thread_that_waits_for_its_core(team: ctypes.CDLL) -> None:
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})  # of this thread, and the threads that it starts
    try:
        shared = team.crowded(ctypes.c_int64(40), 1)
        alone = min(team.crowded(ctypes.c_int64(40), 0) for _ in range(20))  # other processes may share it at times
    finally:
        os.sched_setaffinity(0, cpus)
    assert shared > 10
    assert alone < 10


def test_helpers_remember_a_shared_core(team: ctypes.CDLL) -> None:
    assert team.is_crowded_until(ctypes.c_int64(10_000 * MS)) == 1
    assert 0 in [team.is_crowded_until(ctypes.c_int64(0)) for _ in range(200)]
