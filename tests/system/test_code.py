"""Tests that the code of a network, pasted into a file, runs in its library with the spikes of the reference."""

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snnbench.adapter.contender import find
from snnbench.adapter.discovery import discover
from snnbench.cases import network_reference, reference
from snnbench.code import script
from snnbench.environments import store
from snnbench.plan import config
from snnbench.workloads import nir
from snnbench.workloads.linear_lif import Problem
from tests import in_process
from tests.plan.test_configs import CONFIGS

ROOT = Path(__file__).parents[2]
ALIKE = {"neurons": [48], "batch": [8], "time_steps": [40], "layers": [2]}
WIDE = {"widths": ["40-48-30"], "batch": [8], "time_steps": [40]}
IN_TORCH = """
for linear, name in zip(linears, ("0", "1")):
    linear.weight.data, linear.bias.data = (torch.from_numpy(given[kind + name]) for kind in ("weight", "bias"))
x = torch.from_numpy(given["x"])
spikes = network(x.transpose(0, 1) if batch_first else x).detach()
numpy.save("spikes.npy", (spikes.transpose(0, 1) if batch_first else spikes).numpy())
"""
IN_JAX = """
params = [(given["weight" + name], given["bias" + name]) for name in ("0", "1")]
numpy.save("spikes.npy", network(params, given["x"]))
"""
LIBRARIES: dict[str, Any] = {
    **dict.fromkeys(("fused", "norse", "rockpool", "spikingjelly"), ALIKE),
    **dict.fromkeys(("jax-scan", "sinabs", "snntorch", "torch-loop"), WIDE),
}
OF_GRAPH_IN_TORCH = """
x, batch_first = torch.from_numpy(numpy.load("x.npy")), {batch_first}
spikes = network(x.transpose(0, 1) if batch_first else x).detach()
numpy.save("spikes.npy", (spikes.transpose(0, 1) if batch_first else spikes).numpy())
"""
OF_GRAPH_IN_JAX = """
numpy.save("spikes.npy", network(params, numpy.load("x.npy")))
"""
GRAPHS = [
    ("fused", "images"),
    ("jax-scan", "recurrent"),
    ("jax-scan/unroll-4", "own-constants"),
    ("jaxpike", "images"),
    ("norse", "nested"),
    ("sinabs", "recurrent"),
    ("snntorch/step", "own-constants"),
    ("spikingjelly", "sequences"),
    ("torch-loop", "cubalif"),
]
FEW = 1e-4
"""The share of spikes that rounding may decide otherwise."""


@pytest.mark.libraries
@pytest.mark.parametrize("library", LIBRARIES)
def test_pasted_code_runs_and_has_the_spikes_of_the_reference(tmp_path: Path, library: str) -> None:
    adapters = discover(())
    loaded = config.load(CONFIGS / "quick.toml", default_threads=1, axes=LIBRARIES[library])
    work = next(one for one in config.expand(loaded, adapters) if one.library == library)
    adapter = adapters[library]
    variant = adapter.variants[work.variant]
    problem = Problem(work.case)
    layers, x = problem.layers(), problem.input(0)
    arrays = {"x": x}
    for number, (weight, bias) in enumerate(layers):
        arrays |= {f"weight{number}": weight, f"bias{number}": bias}
    np.savez(tmp_path / "given.npz", **{name: one.astype(np.float32) for name, one in arrays.items()})
    text = script(adapter, variant, work.case)
    (tmp_path / "pasted.py").write_text(text)
    ending = IN_TORCH if variant.backend == "torch" else IN_JAX
    given = f"\nimport numpy\ngiven, batch_first = numpy.load('given.npz'), {variant.order == 'BTN'}\n"
    (tmp_path / "compared.py").write_text(text + given + ending)
    environment = store.sync(store.plan(adapter, work.variant, cuda=False), lambda line: None)
    env = {**os.environ, "PYTHONPATH": str(ROOT)} if library == "fused" else {**os.environ, "PYTHONPATH": ""}
    for name in ("pasted", "compared"):
        command = [str(environment.python), f"{name}.py"]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.endswith(" spikes a step\n")
    expected = reference.network_forward(layers, x, work.case)[-1].spikes
    got = np.load(tmp_path / "spikes.npy")
    assert expected.mean() > 0.01 and (got != expected).mean() <= FEW


@pytest.mark.libraries
@pytest.mark.parametrize(("contender", "graph"), GRAPHS)
def test_pasted_code_of_a_graph_has_the_output_of_the_reference(tmp_path: Path, contender: str, graph: str) -> None:
    """The command's own output, in the environment of the library."""
    command = ["show", contender, "--code", "--nir", graph]
    done = in_process.run(command, tmp_path, {**os.environ})
    assert f"{graph}.npz: written" in done.stderr
    adapters = discover(())
    ((library, name),) = find(contender, adapters)
    variant = adapters[library].variants[name]
    loaded = config.load(CONFIGS / "nir.toml", default_threads=1, axes={"graph": [graph]})
    case = next(case for case in loaded.sweeps[0].cases() if not variant.refusal(case))
    problem = nir.Problem(case.with_(batch=4, time_steps=60))
    in_torch = OF_GRAPH_IN_TORCH.format(batch_first=variant.order == "BTN")
    ending = in_torch if variant.backend == "torch" else OF_GRAPH_IN_JAX
    np.save(tmp_path / "x.npy", problem.input(0))
    (tmp_path / "pasted.py").write_text(done.stdout)
    (tmp_path / "compared.py").write_text(done.stdout.partition("if __name__")[0] + ending)
    environment = store.sync(store.plan(adapters[library], name, cuda=False), lambda line: None)
    env = {**os.environ, "PYTHONPATH": str(ROOT) if library == "fused" else ""}
    for script_name in ("pasted", "compared"):
        command = [str(environment.python), f"{script_name}.py"]
        ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout == ""
    values = network_reference.run(problem, problem.input(0).astype(np.float64))
    expected, got = values[problem.operations()[-1].name].reshape(problem.case.shape), np.load(tmp_path / "spikes.npy")
    assert expected.mean() > 0.01 and (got.reshape(expected.shape) != expected).mean() <= FEW
