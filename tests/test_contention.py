"""Contention, from files like /proc/stat: what others took of all CPUs, or of those that a cell is pinned to."""

import os
from pathlib import Path

from snnbench import contention
from snnbench.contention import Usage, between

TICKS = os.sysconf("SC_CLK_TCK")
STAT = f"""cpu  {9 * TICKS} 0 {3 * TICKS} 500 0 0 0 {2 * TICKS} 0 0
cpu0 {5 * TICKS} 0 {1 * TICKS} 200 0 0 0 {2 * TICKS} 0 0
cpu1 {4 * TICKS} 0 {1 * TICKS} 300 0 0 0 0 0 0
cpu10 0 0 {1 * TICKS} 0 0 0 0 0 0 0
intr 1234
"""


def test_usage_is_that_of_all_cpus_or_of_some(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT)
    found = {cpus: contention.usage(stat, cpus) for cpus in ((), (0,), (1,), (0, 10))}
    assert {cpus: (one.busy_s, one.stolen_s) for cpus, one in found.items()} == {
        (): (12.0, 2.0),
        (0,): (6.0, 2.0),
        (1,): (5.0, 0.0),
        (0, 10): (7.0, 2.0),
    }


def test_what_this_process_used_is_not_foreign() -> None:
    before, after = Usage(0.0, 10.0, 1.0, 5.0), Usage(10.0, 30.0, 2.0, 20.0)
    assert between(before, after) == {"foreign_cpus": 0.5, "stolen_cpus": 0.1, "own_cpus": 1.5}
