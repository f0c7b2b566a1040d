"""Tests of a job's nodes, from Slurm's variables and a fake scontrol, and of the nodes of ranks."""

from pathlib import Path

import pytest

from snnbench.cases import nodes

JOB = {"SLURM_JOB_NUM_NODES": "3", "SLURMD_NODENAME": "n2", "SLURM_JOB_NODELIST": "n[1-3]"}


def program(folder: Path, name: str, text: str) -> dict[str, str]:
    """A job's variables, with a program of this name on the PATH."""
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return JOB | {"PATH": str(folder)}


def test_nodes_are_counted_in_a_job_with_srun(tmp_path: Path) -> None:
    assert nodes.count(JOB | {"PATH": str(tmp_path)}) == 1, "no srun"
    environ = program(tmp_path, "srun", "")
    assert nodes.count(environ) == 3
    assert nodes.count({"PATH": str(tmp_path)}) == 1, "no job"
    assert nodes.count({name: environ[name] for name in environ if name != "SLURMD_NODENAME"}) == 1, "not on a node"


def test_own_node_is_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path, "scontrol", "echo n1; echo n2; echo n3")
    assert nodes.names(JOB) == ["n2", "n1", "n3"]
    program(tmp_path, "scontrol", "exit 1")
    with pytest.raises(OSError, match="scontrol"):
        nodes.names(JOB)


@pytest.mark.parametrize(
    ("ranks", "count", "expected"),
    [(1, 2, [0]), (2, 2, [0, 1]), (2, 3, [0, 1]), (3, 2, [0, 0, 1]), (4, 3, [0, 0, 1, 2]), (4, 1, [0, 0, 0, 0])],
)
def test_neighbours_share_a_node_and_node_0_has_most(ranks: int, count: int, expected: list[int]) -> None:
    assert [nodes.node_of(rank, ranks, count) for rank in range(ranks)] == expected
    assert nodes.most_on_a_node(ranks, count) == expected.count(0) == max(map(expected.count, expected))
