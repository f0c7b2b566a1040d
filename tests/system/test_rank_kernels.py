"""Tests of a layer over many devices: four processes with gloo, and the parts of a split."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from snnbench.analysis.pipelines import pipeline_times
from snnbench.cases.blocks import default_blocks
from snnbench.kernels.parts import part
from snnbench.kernels.ranks import temporal_lif
from tests.frameworks.kernels.rank_process import CASES, IDLE, LONGEST_S, LOST, RANKS, TIMEOUTS_S

ROOT = Path(__file__).parents[2]
GRADIENT_ERRORS = {torch.float64: 1e-13, torch.float32: 5e-6, torch.bfloat16: 1e-2, torch.float16: 1e-3}
"""The largest relative norm of a difference: 5e-6 is this package's limit in float32, the others are roundings."""
MARGIN_S = 10.0
"""Added to a group's timeout, because the tests share their processors."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """The results of every rank but the lost one's; the processes run once for all tests."""
    folder = tmp_path_factory.mktemp("ranks")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = []
    try:
        for rank in range(RANKS):
            command = [sys.executable, "-m", "tests.frameworks.kernels.rank_process", str(folder), str(rank)]
            with (folder / f"{rank}.txt").open("wb") as output:
                processes.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output))
        for rank, process in enumerate(processes):
            process.wait(LONGEST_S)
            assert process.returncode == 0, (folder / f"{rank}.txt").read_text()
    finally:
        for process in processes:
            process.kill()
            process.wait()
    yield [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]


@pytest.mark.parametrize("name", CASES)
def test_parts_equal_the_whole_layer(results: list[dict[str, Any]], name: str) -> None:
    for rank in CASES[name].members:
        result = results[rank][name]
        assert result["equal"] and result["error"] <= GRADIENT_ERRORS[CASES[name].dtype], (rank, result)
        assert 0.05 < result["rate"] < 0.9


def test_every_kind_runs_on_every_number_of_ranks() -> None:
    temporal = [case for case in CASES.values() if case.split == "temporal"]
    assert {len(case.members) for case in temporal} == {1, 2, 3, 4}
    assert {(case.reset, case.detach) for case in temporal if len(case.members) == RANKS} == {
        (reset, detach) for reset in ("subtract", "zero") for detach in (False, True)
    }
    assert {case.shape[0] % len(case.members) for case in temporal} >= {0, 1, 2}


@pytest.mark.parametrize("name", ["pass 1", "pass 2", "inference", "retained", "strides", "changed in place"])
def test_two_layers_and_several_passes(results: list[dict[str, Any]], name: str) -> None:
    assert all(result[name]["equal"] and result[name]["error"] <= 5e-6 for result in results), results


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("blocks", "ValueError: 0 blocks"),
        ("learned", "ValueError: beta and threshold are numbers"),
        ("keep", "ValueError: keep 'all'"),
        ("shape", "ValueError: input has the shape"),
        ("device", "Unsupported: gloo sends no tensors on meta"),
        ("outside", "ValueError: this process is not in the group"),
    ],
)
def test_invalid_calls_are_refused(results: list[dict[str, Any]], name: str, message: str) -> None:
    assert all(result[name].startswith(message) for result in results), [result[name] for result in results]


def test_without_a_group_the_call_is_refused() -> None:
    with pytest.raises(ValueError, match="has not been initialized"):
        temporal_lif(torch.ones(3, 2, 2), beta=0.9, threshold=1.0)


@pytest.mark.parametrize("name", [IDLE, LOST])
def test_missing_rank_raises_in_bounded_time(results: list[dict[str, Any]], name: str) -> None:
    """Rank 1 of 4 is missing: its neighbours raise an error, and every rank comes to an end."""
    endings = [results[rank][name] for rank in range(RANKS) if rank != 1]
    assert all(ending["seconds"] < TIMEOUTS_S[name] + MARGIN_S for ending in endings), endings
    assert all("RuntimeError" in results[rank][name]["error"] for rank in (0, 2)), endings


SHAPES = [(5, 4, 3), (7, 7, 7), (10, 3, 8)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("split", "axis"), [("temporal", 0), ("batch", 1), ("neurons", 2)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_parts_cover_the_axis_once(shape: tuple[int, int, int], split: Any, axis: int, count: int) -> None:
    own = [part(split, shape, rank, count) for rank in range(count)]
    numbers = [list(range(shape[axis]))[slices[axis]] for slices in own]
    assert [number for piece in numbers for number in piece] == list(range(shape[axis]))
    lengths = [len(piece) for piece in numbers]
    assert lengths == sorted(lengths, reverse=True) and lengths[0] - lengths[-1] <= 1
    for slices in own:
        assert all(slices[other] == slice(0, shape[other]) for other in range(3) if other != axis)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("time", (5, 4, 3), 0, 2), "split 'time'"),
        (("temporal", (5, 4, 3), 0, 6), "6 ranks for 5 steps"),
        (("batch", (5, 4, 3), 0, 5), "5 ranks for 4 samples"),
        (("neurons", (5, 4, 3), 0, 4), "4 ranks for 3 neurons"),
        (("batch", (5, 4, 3), 2, 2), "rank 2 of 2"),
        (("batch", (5, 4, 3), -1, 2), "rank -1 of 2"),
        (("batch", (5, 4, 3), 0, 0), "rank 0 of 0"),
    ],
)
def test_invalid_parts_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        part(*arguments)


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_default_blocks_bound_the_fill_to_a_quarter(count: int) -> None:
    blocks = default_blocks(count, 10**6)
    assert pipeline_times(1.0, 0.0, count, blocks).filled == pytest.approx(1.25 / count)
    assert default_blocks(count, 2) == 2


def test_default_of_one_rank_is_one_block() -> None:
    assert default_blocks(1, 1000) == default_blocks(1, 0) == 1
