"""Tests of contention, from files like /proc/stat: foreign use of all CPUs, or of a cell's pinned CPUs."""

import os
from pathlib import Path

import pytest

from snnbench.worker import contention
from snnbench.worker.contention import Usage, between
from tests.fakes import ask, overridden, reply_of, request

TICKS = os.sysconf("SC_CLK_TCK")
STAT = f"""cpu  {9 * TICKS} 0 {3 * TICKS} 500 0 0 0 {2 * TICKS} 0 0
cpu0 {5 * TICKS} 0 {1 * TICKS} 200 0 0 0 {2 * TICKS} 0 0
cpu1 {4 * TICKS} 0 {1 * TICKS} 300 0 0 0 0 0 0
cpu10 0 0 {1 * TICKS} 0 0 0 0 0 0 0
intr 1234
"""


def taken(foreign: float, stolen: float, own: float, error: float = 0.0) -> dict[str, float]:
    return {"foreign_cpus": foreign, "stolen_cpus": stolen, "own_cpus": own, "error_cpus": error}


def test_usage_of_all_or_some_cpus(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT)
    usages = {cpus: contention.usage(stat, cpus) for cpus in ((), (0,), (1,), (0, 10))}
    assert {cpus: (one.busy_s, one.stolen_s) for cpus, one in usages.items()} == {
        (): (12.0, 2.0),
        (0,): (6.0, 2.0),
        (1,): (5.0, 0.0),
        (0, 10): (7.0, 2.0),
    }


def test_interrupts_are_busy_but_waiting_is_not(tmp_path: Path) -> None:
    """user 1, nice 2, system 4, idle 8, iowait 16, irq 32, softirq 64, steal 128."""
    stat = tmp_path / "stat"
    stat.write_text("cpu " + " ".join(str(2**power * TICKS) for power in range(8)) + " 0 0\n")
    counted = contention.usage(stat)
    assert (counted.busy_s, counted.stolen_s) == (1 + 2 + 4 + 32 + 64, 128)


def test_foreign_cpus_are_never_negative() -> None:
    """A process's own clock is finer than the counter of /proc/stat, and can be ahead of it."""
    before, after = Usage(0.0, 10.0, 1.0, 5.0), Usage(10.0, 11.0, 1.0, 6.5)
    assert between(before, after) == taken(0.0, 0.0, 0.15)
    assert between(before, before) == taken(0.0, 0.0, 0.0)


def test_cpus_are_rounded_to_thousandths() -> None:
    before, after = Usage(0.0, 0.0, 0.0, 0.0), Usage(1.0, 0.35791, 0.23456, 0.12345)
    assert between(before, after) == taken(0.234, 0.235, 0.123)


def test_most_disturbed_phase_counts_including_stolen_time() -> None:
    def phase(foreign: float, stolen: float) -> dict[str, dict[str, float]]:
        return {"contention": {"foreign_cpus": foreign, "stolen_cpus": stolen}}

    phases = {"train": phase(0.25, 0.0), "forward": phase(0.125, 0.5), "backward": {}}
    assert contention.others_cpus(phases) == 0.625
    assert contention.others_cpus({}) == contention.others_cpus({"train": {}}) == 0.0


def test_steps_of_the_counter_are_an_error_of_short_phases() -> None:
    """Two readings of four CPUs in steps of 10 ms: 20 ms, which are 0.2 CPUs of a tenth of a second."""
    before, after = Usage(0.0, 0.0, 0.0, 0.0, 0.02), Usage(0.1, 0.065, 0.0, 0.04, 0.02)
    assert between(before, after) == taken(0.25, 0.0, 0.4, 0.2)
    longer = Usage(10.0, 6.5, 0.0, 4.0, 0.02)
    assert between(before, longer) == taken(0.25, 0.0, 0.4, 0.002)
    phases = {"train": {"contention": between(before, after)}}
    assert contention.others_cpus(phases) == pytest.approx(0.05)
    assert contention.others_cpus({"train": {"contention": between(before, longer)}}) == pytest.approx(0.248)
    assert contention.others_cpus({"train": {"contention": between(before, before)}}) == 0.0


def test_error_grows_with_the_root_of_the_cpus(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT)
    assert contention.usage(stat, (0,)).error_s == 1 / TICKS
    assert contention.usage(stat, (0, 1, 2, 3)).error_s == 2 / TICKS
    assert contention.usage(stat).error_s == pytest.approx((os.cpu_count() or 1) ** 0.5 / TICKS)


def test_usage_of_ranks_on_other_machines_is_added() -> None:
    assert Usage(1.0, 10.0, 2.0, 5.0).with_ranks(4.0, 0.5, 3.0) == Usage(1.0, 14.0, 2.5, 8.0)


def test_own_usage_is_not_foreign() -> None:
    before, after = Usage(0.0, 10.0, 1.0, 5.0), Usage(10.0, 30.0, 2.0, 20.0)
    assert between(before, after) == taken(0.5, 0.1, 1.5)


def test_work_between_repetitions_can_be_left_out() -> None:
    """Of 3 CPU seconds of others in 10 s, 2 were used in 5 s of a proof."""
    started, ended = Usage(10.0, 0.0, 0.125, 0.0), Usage(20.0, 13.0, 1.0, 10.0)
    assert between(started, ended)["foreign_cpus"] == 0.3
    rest = started.after_all(Usage(12.0, 2.0, 0.5, 2.0), Usage(17.0, 9.0, 0.75, 7.0))
    assert between(rest, ended) == taken(0.2, 0.125, 1.0)


COMPILER = """
import subprocess
import sys
from snnbench.backends import numpy as driver

""" + overridden(
    """
    def train(self):
        if not hasattr(self, "program"):
            burn = "import time\\nwhile time.process_time() < 1: pass"
            self.program = subprocess.run([sys.executable, "-c", burn])
        return super().train()
    """
)
"""A library that compiles in a process of its own in the first call of each network."""


@pytest.mark.quiet
def test_compiler_in_the_first_call_is_no_contention(tmp_path: Path) -> None:
    reply = reply_of(ask(tmp_path, COMPILER, request("time", phases=("train",), min_repetition_ns=20_000_000)))
    timing = reply.phases["train"]
    assert timing["first_call_ns"] > 500_000_000
    assert timing["contention"]["foreign_cpus"] < 0.5
