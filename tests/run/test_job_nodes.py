"""Tests of jobs with several nodes: their option of sbatch, and the CPUs and GPUs of each node."""

from dataclasses import replace

import pytest

from snnbench.adapter.contender import Work
from snnbench.run.slurm import scheduler
from snnbench.run.slurm.scheduler import UnknownOption
from snnbench.run.slurm.submit import resources
from snnbench.workloads import lif_devices
from tests.fakes import CASE, LIF


def test_resources_of_a_job_are_for_each_node() -> None:
    case = lif_devices.Case(**LIF.as_dict() | {"workload": "lif_devices", "devices": 3})
    cpu, gpu = (Work(replace(case, device=device, threads=2), "a", "default") for device in ("cpu", "cuda"))
    assert resources({}, [cpu]) == {"cpus_per_task": "6"}
    assert resources({"nodes": "2"}, [gpu]) == {"nodes": "2", "gpus_per_node": "2", "cpus_per_task": "4"}


def test_more_nodes_than_devices_are_refused() -> None:
    case = lif_devices.Case(**LIF.as_dict() | {"workload": "lif_devices", "devices": 3})
    with pytest.raises(
        UnknownOption, match=r"^--slurm: nodes=4: no case has more than 3 devices, so nodes would be idle$"
    ):
        resources({"nodes": "4"}, [Work(case, "a", "default")])
    with pytest.raises(UnknownOption, match=r"^--slurm: nodes=2: no case has more than 1 device, "):
        resources({"nodes": "2"}, [Work(CASE, "a", "default")])


@pytest.mark.parametrize("text", ["nodes=0", "nodes=1-2", "nodes=two", "nodes"])
def test_nodes_of_a_job_are_a_number(text: str) -> None:
    assert scheduler.nodes(scheduler.options(["nodes=2"])) == 2
    assert scheduler.nodes({}) == 1
    with pytest.raises(
        UnknownOption, match=r"^--slurm: nodes=\S+: expected a number of nodes for each job, such as 2$"
    ):
        scheduler.options([text])
