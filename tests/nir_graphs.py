"""Small NIR graphs, written with h5py as the `nir` package writes them, and fake importers of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from snnbench.conformance.graph import Array, Graph

ROOT = Path(__file__).parent.parent
GRAPHS = ROOT / "graphs"
ENDS = {"input": {"type": "Input", "shape": [2]}, "output": {"type": "Output", "shape": [2]}}
LIF = {"type": "LIF", "tau": [0.004, 0.002], "r": [1.0, 2.0], "v_leak": [0.0, 0.0], "v_threshold": [0.5, 1.5]}
AFFINE = {"type": "Affine", "weight": [[1.0, 2.0], [3.0, 0.5]], "bias": [0.25, 0.0]}
CHAIN = (("input", "map"), ("map", "neurons"), ("neurons", "output"))


def write(path: Path, nodes: Mapping[str, Mapping[str, Any]], edges: Sequence[tuple[str, str]] = CHAIN) -> Path:
    """A graph's file; numbers become arrays."""
    with h5py.File(path, "w") as file:
        for name, parameters in nodes.items():
            group = file.create_group(f"node/nodes/{name}")
            for key, value in parameters.items():
                number = np.int64 if key == "shape" else np.float32
                group[key] = value if isinstance(value, str) else np.array(value, number)
        file["node/type"] = "NIRGraph"
        file["node/edges"] = np.array(edges, dtype="S")
    return path


def inputs(graph: Graph, time_steps: int, batch: int = 4) -> Array:
    """Spikes [T, B, ...] whose rate rises from sample to sample."""
    rates = np.array([0.05, 0.1, 0.2, 0.4])[:batch].reshape(1, -1, *(1 for _ in graph.input_shape))
    return (np.random.default_rng(0).random((time_steps, batch, *graph.input_shape)) < rates).astype(np.float64)


def dense(path: Path, **changes: Any) -> Path:
    """Affine and LIF between two inputs and two outputs, with other parameters of the neurons."""
    return write(path, {**ENDS, "map": AFFINE, "neurons": {**LIF, **changes}})


FAKE = '''\
# /// script
# dependencies = ["numpy"]
# ///
"""A fake library whose importer is this package's own reference."""

import os
import time

import h5py
import numpy as np

from snnbench.adapter import Unsupported
from snnbench.conformance import graph as graphs
from snnbench.conformance.network import Network
from snnbench.conformance.interpretation import Interpretation

BACKEND = "numpy"
DIFFERENCES = ()


def neuron(case, variant):
    raise Unsupported("none")


def from_nir(path, dt, batch):
    pass  # importing

    def run(spikes):
        network = Network(graphs.read(path), spikes.astype(np.float64), dt)
        output = np.array([step.output for step in network.answer(Interpretation(DIFFERENCES))])
        return output

    return run


def to_nir(layers, dt, path):
    ((weight, bias, case),) = layers
    tau = dt / (1 - case.beta)
    each = {"tau": tau, "r": 1 / (1 - case.beta), "v_leak": 0.0, "v_threshold": case.threshold}
    shapes = [[size] for size in weight.shape]
    nodes = {
        "input": {"type": "Input", "shape": shapes[1]},
        "map": {"type": "Affine", "weight": weight, "bias": bias},
        "neurons": {"type": "LIF"} | {name: np.full(len(bias), value) for name, value in each.items()},
        "output": {"type": "Output", "shape": shapes[0]},
    }
    names = list(nodes)
    with h5py.File(path, "w") as file:
        file["node/type"] = "NIRGraph"
        file["node/edges"] = np.array(list(zip(names, names[1:])), dtype="S")
        for name, parameters in nodes.items():
            for key, value in parameters.items():
                file[f"node/nodes/{name}/{key}"] = value

    def run(spikes):
        v, outputs = 0.0, []
        for current in spikes @ weight.T + bias:
            u = case.beta * v + current
            outputs.append((u >= case.threshold).astype(np.float32))
            v = u * (1 - outputs[-1])
        return np.stack(outputs)

    return run
'''


def fake(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """An adapter file, with texts of FAKE replaced."""
    source = FAKE
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    path = folder / f"{name}.py"
    path.write_text(source)
    return path
