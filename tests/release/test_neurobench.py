"""Tests of operation counts against the NeuroBench package, whose metrics run on the same networks with equal spikes.

The environment leaves out packages of NeuroBench's data sets and preprocessors (torchaudio, Tonic, Numba): no metric
imports them, and torchaudio has no build for every machine.
"""

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from snnbench.adapter import reading
from snnbench.analysis.operation_counts import DEFINITIONS, network, of_problem
from snnbench.cases import network_reference
from snnbench.cases.operations import Neurons
from snnbench.cases.problem import Graph, Problem
from snnbench.environments import store
from snnbench.workloads import linear_lif
from snnbench.workloads import network as networks
from tests.fakes import CASE, profile
from tests.networks import SMALL

pytestmark = pytest.mark.libraries
SCRIPT = Path(__file__).parents[1] / "neurobench_run.py"
HEADER = """\
# /// script
# requires-python = ">=3.11"
# dependencies = ["neurobench==2.3.0", "snntorch==1.0.0", "torch==2.13.0", "numpy==2.4.6", "tqdm==4.70.1"]
#
# [tool.uv]
# override-dependencies = [
#     "torchaudio ; python_version < '3'", "tonic ; python_version < '3'", "numba ; python_version < '3'",
#     "llvmlite ; python_version < '3'",
# ]
# ///
"""
LEAKY_BUFFERS = 20
"""Bytes of the buffers of snnTorch's Leaky before its first step: four constants."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with NeuroBench."""
    path = tmp_path_factory.mktemp("package") / "neurobench.py"
    path.write_text(f'{HEADER}"""NeuroBench."""\nBACKEND = "torch"\ndef neuron(case, variant): ...\n', encoding="utf-8")
    declared = reading.read(path)
    return store.sync(store.plan(declared, declared.default, cuda=False), print).python


def stack(reset: str, layers: int, **changes: Any) -> linear_lif.Problem:
    """A stack; with a reset that subtracts, no potential reaches twice the threshold, where Leaky is another neuron."""
    sizes = {"neurons": 24, "batch": 3, "time_steps": 11, "layers": layers, "input_rate": 0.3}
    return linear_lif.Problem(
        CASE.with_(**profile(reset), **(sizes | changes)), drive=0.4 if reset == "subtract" else 1.0
    )


PROBLEMS = {
    "exact arithmetic": linear_lif.exam(CASE.with_(**profile("zero")), 2),
    "subtract": stack("subtract", 1),
    "numbers as input": stack("zero", 2, input_kind="gaussian", input_rate=1.0),
    "some zero inputs": stack("zero", 1, input_kind="gaussian", input_rate=0.4),
    "convolutions": networks.exams(SMALL.with_(**profile("zero")))[0],
}


def parameters(problem: Problem) -> dict[str, list[Any]]:
    """The parameters of each operation that has some."""
    if isinstance(problem, Graph):
        return problem.parameters()
    linear = [operation.name for operation in network(problem) if operation.parameters]
    return {name: list(layer) for name, layer in zip(linear, problem.layers(), strict=True)}


def metrics(python: Path, problem: Problem, folder: Path, delayed: bool = False) -> dict[str, Any]:
    """The answer of the package for a problem: the metrics, the bytes of buffers, and the spikes of each site."""
    drawn = parameters(problem)
    arrays = {f"{name}:{number}": array for name, given in drawn.items() for number, array in enumerate(given)}
    np.savez(folder / "arrays.npz", input=problem.input(0), **arrays)
    document = {
        "operations": [{"kind": type(operation).__name__, **asdict(operation)} for operation in network(problem)],
        **{name: getattr(problem.case, name) for name in ("beta", "threshold", "reset")},
        "delayed": delayed,
    }
    command = [str(python), str(SCRIPT), str(folder / "arrays.npz")]
    done = subprocess.run(command, input=json.dumps(document), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def reference_spikes(problem: Problem) -> dict[str, list[int]]:
    """The spikes of the reference at each site, as one list."""
    operations, images = network(problem), problem.input(0).astype(np.float64)
    drawn = {name: [array.astype(np.float64) for array in arrays] for name, arrays in parameters(problem).items()}
    graph: Any = SimpleNamespace(
        operations=lambda: operations, parameters=lambda: drawn, neuron=lambda site: problem.case
    )
    values = network_reference.run(graph, images)
    return {
        each.name: values[each.name].reshape(-1).astype(int).tolist()
        for each in operations
        if isinstance(each, Neurons)
    }


def test_definitions_are_of_the_pinned_release() -> None:
    assert DEFINITIONS.replace(" ", "==").lower() in HEADER


@pytest.mark.parametrize("name", PROBLEMS)
def test_counts_equal_the_metrics_of_the_package(name: str, python: Path, tmp_path: Path) -> None:
    """Every number is a count or a quotient of two, so the package and snnbench must agree to the last bit.

    The exception is a sparsity that the package weighs by the samples of each batch, which rounds twice.
    """
    problem = PROBLEMS[name]
    answer, counts = metrics(python, problem, tmp_path), of_problem(problem)
    spikes = reference_spikes(problem)
    assert answer["spikes"] == spikes
    assert all(0 < sum(fired) < len(fired) for fired in spikes.values()), "each site fires, and not always"
    results, traced = answer["results"], counts.traced
    assert traced is not None and traced.samples == problem.case.batch
    assert results["Footprint"] == counts.footprint_bytes + answer["buffers"]
    assert results["ParameterCount"] == counts.parameters
    assert results["ConnectionSparsity"] == traced.connection_sparsity
    batch = traced.samples
    assert results["ActivationSparsity"] == traced.activation_sparsity * batch / batch
    assert results["ActivationSparsityByLayer"] == traced.activation_sparsity_by_layer
    assert results["SynapticOperations"] == {
        "Effective_MACs": traced.effective_macs,
        "Effective_ACs": traced.effective_acs,
        "Dense": counts.dense_operations,
    }
    assert results["MembraneUpdates"] == traced.membrane_updates
    assert results["NeuronOperations"] == {
        "Effective Neuron Ops": traced.effective_neuron_operations,
        "Neuron Dense Ops": counts.dense_neuron_operations,
    }


def test_problems_have_every_kind_of_number() -> None:
    """An error in a count shows only where the count is not 0 and is not its upper bound."""
    counts = [of_problem(problem) for problem in PROBLEMS.values()]
    traced = [each.traced for each in counts if each.traced]
    assert len(traced) == len(PROBLEMS)
    assert any(each.effective_macs and each.effective_acs for each in traced)
    assert {bool(each.connection_sparsity) for each in traced} == {False, True}
    assert any(each.membrane_updates * 4 != of.dense_neuron_operations for each, of in zip(traced, counts, strict=True))


def test_buffers_of_a_library_are_beyond_the_footprint(python: Path, tmp_path: Path) -> None:
    assert metrics(python, PROBLEMS["subtract"], tmp_path)["buffers"] == LEAKY_BUFFERS


def test_delayed_reset_keeps_another_potential(python: Path, tmp_path: Path) -> None:
    """Leaky as snnTorch's tutorials have it stores the potential before its reset, so it updates more often."""
    problem = PROBLEMS["exact arithmetic"]
    delayed, counts = metrics(python, problem, tmp_path, delayed=True), of_problem(problem)
    assert delayed["spikes"] == reference_spikes(problem) and counts.traced
    assert delayed["results"]["MembraneUpdates"] > counts.traced.membrane_updates
