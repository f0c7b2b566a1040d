"""Tests of the pipelines of the workload of several devices."""

from snnbench import workloads
from tests.fakes import CASE, DIVIDED, LIF


def test_only_a_split_along_time_is_a_pipeline() -> None:
    """4 (k - 1) blocks of the 7 * 48 columns."""
    four = DIVIDED.with_(devices=4)
    assert [workloads.of(four).pipeline_blocks(four, split) for split in ("temporal", "batch", "neurons", "")] == [
        12,
        *[None] * 3,
    ]
    assert workloads.of(four).pipeline_blocks(four.with_(batch=1, neurons=5), "temporal") == 5


def test_workload_without_pipelines_has_none() -> None:
    assert workloads.of(CASE).pipeline_blocks(CASE, "temporal") is None
    assert workloads.of(LIF).pipeline_blocks(LIF, "temporal") is None
