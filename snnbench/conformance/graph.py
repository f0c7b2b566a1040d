"""Graphs of NIR, read from their HDF5 files: nodes with their parameters in float64, in the order of computation.

NIR is the Neuromorphic Intermediate Representation, a file format for spiking networks. The `nir` package writes its
files. This module reads the files without that package, so that one reader serves all environments.
Docs: https://neuroir.org/docs/primitives.html
"""

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from snnbench.exits import UserError
from snnbench.suggestions import unknown

Array = NDArray[np.float64]

PARAMETERS = {
    "Input": ("shape",),
    "Output": ("shape",),
    "Affine": ("weight", "bias"),
    "Linear": ("weight",),
    "Conv2d": ("weight", "bias", "stride", "padding", "dilation", "groups"),
    "LI": ("tau", "r", "v_leak"),
    "LIF": ("tau", "r", "v_leak", "v_threshold"),
    "IF": ("r", "v_threshold"),
    "CubaLI": ("tau_syn", "tau_mem", "r", "v_leak", "w_in"),
    "CubaLIF": ("tau_syn", "tau_mem", "r", "v_leak", "v_threshold", "w_in"),
}
"""The nodes that this module reads, and the parameters that each of them must have."""
NEURONS = ("LI", "LIF", "IF", "CubaLI", "CubaLIF")
SPIKING = ("LIF", "IF", "CubaLIF")


class GraphError(UserError):
    """The file holds no graph that can be checked; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node: its kind, a key of PARAMETERS, its parameters, and the nodes whose outputs are summed to its input."""

    name: str
    kind: str
    parameters: dict[str, Any]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The nodes of a graph, each after its sources. It has one input, one output and no cycle."""

    nodes: tuple[Node, ...]

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the input of one sample in one step."""
        return self._shape("Input")

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of the output of one sample in one step."""
        return self._shape("Output")

    @property
    def last(self) -> Node:
        """The node whose output is the graph's."""
        (source,) = self.of("Output").sources
        return next(node for node in self.nodes if node.name == source)

    def of(self, kind: str) -> Node:
        """The first node of this kind."""
        return next(node for node in self.nodes if node.kind == kind)

    def _shape(self, kind: str) -> tuple[int, ...]:
        return tuple(int(size) for size in np.ravel(self.of(kind).parameters["shape"]))


def read(path: Path) -> Graph:
    """The graph in the file at `path`. Raises GraphError."""
    try:
        with h5py.File(path, "r") as file:
            root = file["node"]
            nodes = {name: _node(path, name, group) for name, group in root["nodes"].items()}
            edges = [(_text(start), _text(end)) for start, end in root["edges"][()]]
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file") from None
    except (OSError, KeyError, AttributeError, TypeError) as error:
        reason = str(error).strip("'\"").splitlines()[0]
        raise GraphError(f"{path}: no NIR graph: {reason}; expected a file of nir.write()") from error
    return _ordered(path, nodes, edges)


def _node(path: Path, name: str, group: Any) -> Node:
    kind = _text(group["type"][()])
    if kind not in PARAMETERS:
        raise GraphError(f"{path}: node {name!r}: {unknown('kind', kind, PARAMETERS)}")
    parameters = {key: _value(item[()]) for key, item in group.items() if isinstance(item, h5py.Dataset)}
    missing = [key for key in PARAMETERS[kind] if key not in parameters]
    if missing:
        raise GraphError(f"{path}: node {name!r}: no {' and no '.join(missing)}, which {kind} has")
    taus = [key for key in PARAMETERS[kind] if key.startswith("tau")]
    if any(not np.all(parameters[key] > 0) for key in taus):
        raise GraphError(f"{path}: node {name!r}: {' and '.join(taus)} should be above 0")
    if kind in SPIKING:
        parameters.setdefault("v_reset", np.zeros_like(parameters["v_threshold"]))
    return Node(name, kind, parameters)


def _ordered(path: Path, nodes: dict[str, Node], edges: list[tuple[str, str]]) -> Graph:
    sources: dict[str, list[str]] = {name: [] for name in nodes}
    for start, end in edges:
        if start not in nodes or end not in nodes:
            raise GraphError(f"{path}: the edge from {start!r} to {end!r} has an end without a node")
        sources[end].append(start)
    kinds = [node.kind for node in nodes.values()]
    if kinds.count("Input") != 1 or kinds.count("Output") != 1:
        raise GraphError(f"{path}: expected one Input and one Output, not {', '.join(sorted(kinds))}")
    try:
        order = list(TopologicalSorter(sources).static_order())
    except CycleError as error:
        raise GraphError(f"{path}: {' -> '.join(error.args[1])} is a cycle; recurrence is not checked") from error
    unfed = [name for name in order if not sources[name] and nodes[name].kind != "Input"]
    if unfed or len(sources[next(name for name in nodes if nodes[name].kind == "Output")]) != 1:
        raise GraphError(f"{path}: each node needs a source, and Output exactly one ({', '.join(unfed) or 'Output'})")
    return Graph(tuple(Node(name, nodes[name].kind, nodes[name].parameters, tuple(sources[name])) for name in order))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _value(value: Any) -> Any:
    if isinstance(value, bytes | str):
        return _text(value)
    return np.asarray(value, np.float64)
