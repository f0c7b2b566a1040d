"""Graphs of NIR, read from their HDF5 files: nodes with their parameters in float64, in the order of computation.

NIR is the Neuromorphic Intermediate Representation, a file format for spiking networks. The `nir` package writes its
files. This module reads the files without that package, so that one reader serves all environments. A graph within a
graph is taken apart: its nodes have its name before their own. A neuron whose spikes come back to it through one node
has that node as its `back`.
Docs: https://neuroir.org/docs/primitives.html
"""

from dataclasses import dataclass, replace
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from snnbench.exits import UserError

Array = NDArray[np.float64]

CONVOLUTION = ("weight", "bias", "stride", "padding", "dilation", "groups")
POOL = ("kernel_size", "stride", "padding")
PARAMETERS = {
    "Input": ("shape",),
    "Output": ("shape",),
    "Affine": ("weight", "bias"),
    "Linear": ("weight",),
    "Scale": ("scale",),
    "Conv1d": CONVOLUTION,
    "Conv2d": CONVOLUTION,
    "SumPool2d": POOL,
    "AvgPool2d": POOL,
    "Flatten": ("start_dim", "end_dim"),
    "LI": ("tau", "r", "v_leak"),
    "LIF": ("tau", "r", "v_leak", "v_threshold"),
    "IF": ("r", "v_threshold"),
    "CubaLI": ("tau_syn", "tau_mem", "r", "v_leak", "w_in"),
    "CubaLIF": ("tau_syn", "tau_mem", "r", "v_leak", "v_threshold", "w_in"),
    "Threshold": ("threshold",),
}
"""The nodes that this module reads, and the parameters that each of them must have."""
NEURONS = ("LI", "LIF", "IF", "CubaLI", "CubaLIF")
SPIKING = ("LIF", "IF", "CubaLIF")
INTEGRATING = ("LI", "CubaLI")
BACK = ("Affine", "Linear", "Scale")
"""The nodes through which a neuron's own spikes may come back to it, one step later."""
GRAPH = "NIRGraph"


class GraphError(UserError):
    """The file holds no graph that can be checked; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node: its kind, a key of PARAMETERS, its parameters, and the nodes whose outputs are summed to its input.

    `back` is the node through which a neuron gets its own spikes of the step before, or None.
    """

    name: str
    kind: str
    parameters: dict[str, Any]
    sources: tuple[str, ...] = ()
    back: "Node | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The nodes of a graph, each after its sources. It has one input and one output."""

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


@dataclass(slots=True)
class _Parts:
    """The nodes and edges of a graph and of all graphs in it. `doors` are the inputs and outputs of these."""

    path: Path
    nodes: dict[str, Node]
    edges: list[tuple[str, str]]
    doors: set[str]

    def sources(self, name: str) -> list[str]:
        """The nodes from which edges lead to a node."""
        return [start for start, end in self.edges if end == name]

    def targets(self, name: str) -> list[str]:
        """The nodes to which edges lead from a node."""
        return [end for start, end in self.edges if start == name]


def read(path: Path) -> Graph:
    """The graph in the file at `path`. Raises GraphError."""
    parts = _Parts(path, {}, [], set())
    if path.is_dir():
        raise GraphError(f"{path}: no NIR graph but a folder; expected a file of nir.write()")
    try:
        with h5py.File(path, "r") as file:
            _take_in(parts, file["node"], "")
    except GraphError:
        raise
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file") from None
    except (OSError, KeyError, AttributeError, TypeError, ValueError, IndexError) as error:
        reason = str(error).strip("'\"").splitlines()[0].partition(" (")[0]
        raise GraphError(f"{path}: no NIR graph: {reason}; expected a file of nir.write()") from error
    parts.edges = list(dict.fromkeys(parts.edges))
    for start, end in parts.edges:
        if start not in parts.nodes or end not in parts.nodes:
            raise GraphError(f"{path}: the edge from {start!r} to {end!r} has an end without a node")
        if parts.nodes[start].kind == "Output" and start not in parts.doors:
            raise GraphError(f"{path}: the edge from {start!r} to {end!r} begins at the graph's Output")
    _open_doors(parts)
    _close_loops(parts)
    return _ordered(parts)


def _take_in(parts: _Parts, group: Any, prefix: str) -> tuple[str, str]:
    """Add the nodes and edges of a graph, whose names get the prefix; return its input and its output."""
    inner: dict[str, tuple[str, str]] = {}
    ends: dict[str, list[str]] = {"Input": [], "Output": []}
    for name, item in group["nodes"].items():
        if _text(item["type"][()]) == GRAPH:
            inner[name] = _take_in(parts, item, f"{prefix}{name}.")
            parts.doors.update(inner[name])
            continue
        node = _node(parts.path, f"{prefix}{name}", item)
        if node.name in parts.nodes:
            raise GraphError(f"{parts.path}: two nodes have the name {node.name!r}, one of them in a graph of its own")
        parts.nodes[node.name] = node
        ends.get(node.kind, []).append(node.name)
    if any(len(names) != 1 for names in ends.values()):
        where = f"{prefix.removesuffix('.')!r}: " if prefix else ""
        kinds = sorted(_text(item["type"][()]) for item in group["nodes"].values())
        raise GraphError(f"{parts.path}: {where}expected one Input and one Output, not {', '.join(kinds)}")
    for start, end in group["edges"][()]:
        first, last = _text(start), _text(end)
        leaving = inner[first][1] if first in inner else f"{prefix}{first}"
        parts.edges.append((leaving, inner[last][0] if last in inner else f"{prefix}{last}"))
    return ends["Input"][0], ends["Output"][0]


def _node(path: Path, name: str, group: Any) -> Node:
    kind = _text(group["type"][()])
    if kind not in PARAMETERS:
        known = ", ".join(PARAMETERS)
        near = f" (did you mean {close[0]!r}?)" if (close := get_close_matches(kind, PARAMETERS, 1)) else ""
        raise GraphError(f"{path}: node {name!r}: a {kind} is not read{near}; the kinds that are: {known}")
    parameters = {key: _value(item[()]) for key, item in group.items() if isinstance(item, h5py.Dataset)}
    missing = [key for key in PARAMETERS[kind] if key not in parameters]
    if missing:
        raise GraphError(f"{path}: node {name!r}: no {' and no '.join(missing)}, which {kind} has")
    taus = [key for key in PARAMETERS[kind] if key.startswith("tau")]
    if any(not np.all(parameters[key] > 0) for key in taus):
        raise GraphError(f"{path}: node {name!r}: {' and '.join(taus)} should be above 0")
    for key, value in parameters.items():
        if isinstance(value, str) and key not in ("type", "padding"):
            raise GraphError(f"{path}: node {name!r}: {key} is a text, {value!r}")
        if not isinstance(value, str) and not np.isfinite(value).all():
            raise GraphError(f"{path}: node {name!r}: {key} has a number that is not finite")
    if kind in SPIKING:
        parameters.setdefault("v_reset", np.zeros_like(parameters["v_threshold"]))
    return Node(name, kind, parameters)


def _open_doors(parts: _Parts) -> None:
    """Take out the inputs and outputs of inner graphs: what leads to one leads on."""
    for door in sorted(parts.doors):
        if door in parts.targets(door):
            raise GraphError(f"{parts.path}: {door!r} leads to itself")
        through = [(start, end) for start in parts.sources(door) for end in parts.targets(door)]
        parts.edges = [edge for edge in parts.edges if door not in edge] + through
        del parts.nodes[door]


def _close_loops(parts: _Parts) -> None:
    """Give each neuron the node through which its own spikes come back, and take that node out."""
    for name, node in list(parts.nodes.items()):
        if node.kind not in SPIKING:
            continue
        loops = [each for each in parts.targets(name) if each == name or parts.targets(each) == [name]]
        loops = [each for each in loops if each == name or parts.sources(each) == [name]]
        loops = [each for each in loops if each == name or parts.nodes[each].kind in BACK]
        if len(loops) > 1:
            raise GraphError(
                f"{parts.path}: node {name!r}: its spikes come back to it on {len(loops)} ways; one is read"
            )
        for each in loops:
            back = Node(name, "Scale", {"scale": np.ones(1)}) if each == name else parts.nodes.pop(each)
            parts.nodes[name] = replace(node, back=back)
            parts.edges = [edge for edge in parts.edges if edge not in ((name, each), (each, name))]


def _ordered(parts: _Parts) -> Graph:
    nodes, path = parts.nodes, parts.path
    sources = {name: parts.sources(name) for name in nodes}
    try:
        order = list(TopologicalSorter(sources).static_order())
    except CycleError as error:
        raise GraphError(
            f"{path}: {' -> '.join(error.args[1])} is a cycle; the spikes of a LIF, IF or CubaLIF may come back to "
            f"itself through one {', '.join(BACK[:-1])} or {BACK[-1]} alone"
        ) from error
    unfed = [name for name in order if not sources[name] and nodes[name].kind != "Input"]
    output = next(node.name for node in nodes.values() if node.kind == "Output")
    if unfed or len(sources[output]) != 1:
        raise GraphError(f"{path}: each node needs a source, and Output exactly one ({', '.join(unfed) or 'Output'})")
    return Graph(tuple(replace(nodes[name], sources=tuple(sources[name])) for name in order))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _value(value: Any) -> Any:
    if isinstance(value, bytes | str):
        return _text(value)
    if np.iscomplexobj(value):
        raise ValueError("a parameter has complex numbers")
    return np.asarray(value, np.float64)
