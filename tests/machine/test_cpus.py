"""Tests of the CPUs that a cell gets, from made-up topologies and control groups."""

from pathlib import Path

import pytest

from snnbench.machine import cpus
from tests.machine.test_description import Tree, topology, tree

__all__ = ["tree"]


def test_cpus_take_every_core_before_a_second_thread(tree: Tree) -> None:
    root = tree(topology({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}))
    assert cpus.cpus(2, root, range(4)) == [0, 2]
    assert cpus.cpus(4, root, range(4)) == [0, 2, 1, 3]
    assert cpus.cpus(2, root, {1, 2, 3}) == [1, 2]


def test_parallel_cells_have_separate_cpus(tmp_path: Path) -> None:
    lanes = [cpus.cpus(2, tmp_path, range(8), lane=lane) for lane in range(4)]
    assert sorted(cpu for cpus in lanes for cpu in cpus) == list(range(8))
    with pytest.raises(ValueError, match="threads = 2 beside 4 others as wide: expected 1 to 8"):
        cpus.cpus(2, tmp_path, range(8), lane=4)


def test_cpus_stay_on_one_package(tree: Tree) -> None:
    root = tree(topology({cpu: str(cpu) for cpu in range(4)}, {0: 0, 1: 1, 2: 0, 3: 1}))
    assert cpus.cpus(3, root, range(4)) == [0, 2, 1]


def test_cpus_prefer_large_cores(tree: Tree) -> None:
    root = tree({f"{cpus.CPUS}/cpu{cpu}/cpu_capacity": str(400 if cpu < 2 else 1024) for cpu in range(4)})
    assert cpus.cpus(3, root, range(4)) == [2, 3, 0]


def test_cpus_without_topology(tmp_path: Path) -> None:
    assert cpus.cpus(2, tmp_path, [5, 3]) == [3, 5]


@pytest.mark.parametrize("count", [0, -1, 5])
def test_impossible_number_of_cpus_is_refused(tmp_path: Path, count: int) -> None:
    with pytest.raises(ValueError, match=f"^threads = {count}: expected 1 to 4, "):
        cpus.cpus(count, tmp_path, range(4))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 4),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "max 100000"}, 4),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "250000 100000"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "900000 100000"}, 4),
        (
            {
                "proc/self/cgroup": "5:cpuset:/other\n4:cpu:/job\n3:memory:/\n0::/\n",
                "sys/fs/cgroup/cpu/other/cpu.cfs_quota_us": "100000",
                "sys/fs/cgroup/cpu/other/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "300000",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
            },
            3,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            4,
        ),
    ],
)
def test_control_group_limits_the_cpus(tree: Tree, files: dict[str, str], expected: int) -> None:
    assert cpus.usable_cpus(tree(files), range(4)) == expected
