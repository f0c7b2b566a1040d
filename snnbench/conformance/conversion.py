"""From a graph of NIR to a graph of the workload `nir`: operations, and a library's neurons between them.

What a node of neurons does to its current is linear: the resistance, the leak and the size of the threshold. It goes
into the weights of the node before, if that is affine and feeds these neurons only, else into a `Scaling` of its own.
Affine and convolutional nodes keep their shape, and a node without bias gets one only where neurons add something.
"""

import hashlib
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from snnbench.cases.operations import INPUT, Flatten, Linear, Operation, Scaling, Sum
from snnbench.cases.windows import Convolution, WindowSum
from snnbench.conformance.graph import INTEGRATING, PARAMETERS, SPIKING, Array, Graph, GraphError, Node
from snnbench.files import replace_file
from snnbench.workloads import graphs
from snnbench.workloads.graphs import Leaky, Site

FITTING = (Linear, Convolution, Scaling)
"""Operations that can scale a current."""
SITES = ("LIF", "IF", "CubaLIF", "Threshold")
Value = tuple[str, tuple[int, ...]]
"""The name of an operation, and the shape of its value."""


def keep(path: Path, graph: Graph) -> graphs.Graph:
    """The converted graph, whose numbers and file are then kept under the home folder. Raises GraphError."""
    try:
        conversion = _converted(graph)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error
    content = io.BytesIO()
    kept: dict[str, Any] = dict(sorted(conversion.numbers.items()))
    np.savez(content, **kept)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    name = re.sub(r"[^\w.-]", "-", path.stem)[:100] or "graph"
    if min((*conversion.input_shape, *(size for each in conversion.operations.values() for size in each.shape))) < 1:
        raise GraphError(f"{path}: it has an axis without any number")
    converted = graphs.Graph(name, digest, conversion.input_shape, tuple(conversion.operations.values()))
    if len(converted.text()) > graphs.TEXT_LIMIT:
        raise GraphError(f"{path}: it has too many nodes: their text is over {graphs.TEXT_LIMIT:,} characters")
    for kept_as, data in ((converted.path, content.getvalue()), (converted.file, path.read_bytes())):
        kept_as.parent.mkdir(parents=True, exist_ok=True)
        replace_file(kept_as, data)
    return graphs.parse(converted.text())


def stateless(node: Node, name: str, value: Value) -> tuple[Operation, dict[str, Array]]:
    """The operation of a node without a state on a value, and its parameters. Raises GraphError.

    A convolution with groups gets a whole kernel: the same value by more work.
    """
    of, shape = value
    given, operation = node.parameters, dict[str, Any](name=name, of=(of,))
    match node.kind:
        case "Affine" | "Linear":
            weight = given["weight"]
            if weight.ndim != 2 or shape != weight.shape[1:]:
                raise _misfit(node, shape)
            bias = {"bias": np.broadcast_to(np.ravel(given["bias"]), weight.shape[:1])} if "bias" in given else {}
            arrays = {"weight": weight} | bias
            options = {"shape": weight.shape[:1], "inputs": weight.shape[1], "biased": "bias" in given}
            return Linear(**operation, **options), arrays
        case "Scale":
            scale = _fitting(node, "scale", shape)
            return Scaling(**operation, shape=shape), {"weight": np.array(np.broadcast_to(scale, shape))}
        case "Conv1d" | "Conv2d":
            return _convolution(node, operation, shape)
        case "SumPool2d" | "AvgPool2d":
            size, stride = _sizes(node, "kernel_size", 2, 1), _sizes(node, "stride", 2, 1)
            padding = _sizes(node, "padding", 2, 0)
            if any(2 * around > length for around, length in zip(padding, size, strict=True)):
                raise GraphError(f"node {node.name!r}: padding {padding} is over half of the kernel {size}")
            leaving = _leaving(node, shape, size, stride, padding, (1, 1))
            options = {"size": size, "stride": stride, "padding": padding, "is_mean": node.kind == "AvgPool2d"}
            return WindowSum(**operation, shape=(shape[0], *leaving), **options), {}
        case "Flatten":
            start, end = (_axis(node, key, len(shape)) for key in ("start_dim", "end_dim"))
            flat = (*shape[:start], int(np.prod(shape[start : end + 1])), *shape[end + 1 :])
            return Flatten(**operation, shape=flat), {}
    raise GraphError(f"node {node.name!r}: a {node.kind} has a state")


def _converted(graph: Graph) -> "_Conversion":
    """The conversion of a graph. Exporters write axes of time and batch before the input's own: these are left out."""
    misfit: GraphError | None = None
    for first in range(len(graph.input_shape)):
        conversion = _Conversion(graph, graph.input_shape[first:])
        try:
            conversion.run()
        except GraphError as error:
            misfit = misfit or error
            continue
        return conversion
    raise misfit or GraphError("its input has no shape")


class _Conversion:
    """The operations and numbers of a graph so far, and the value of each node."""

    def __init__(self, graph: Graph, input_shape: tuple[int, ...]) -> None:
        self.graph, self.input_shape = graph, input_shape
        self.operations: dict[str, Operation] = {}
        self.numbers: dict[str, Array] = {}
        self.values: dict[str, Value] = {}
        self.output = ""

    def run(self) -> None:
        """Convert all nodes. Raises GraphError."""
        for node in self.graph.nodes:
            try:
                self._take(node)
            except GraphError:
                raise
            except (ValueError, TypeError, IndexError, ArithmeticError) as error:
                raise GraphError(f"node {node.name!r}: {str(error).splitlines()[0]}") from error
        used = {name for operation in self.operations.values() for name in operation.of}
        if unused := [name for name in self.operations if name not in used and name != self.output]:
            raise GraphError(f"node {unused[0]!r}: nothing of it reaches Output")
        if not any(isinstance(operation, Site) for operation in self.operations.values()):
            raise GraphError("it has no spiking neurons, which a library could fill")

    def _take(self, node: Node) -> None:
        if node.kind == "Input":
            self.values[node.name] = INPUT, self.input_shape
        elif node.kind == "Output":
            self._end(node)
        elif node.kind in (*SITES, *INTEGRATING):
            self.values[node.name] = self._neurons(node)
        else:
            if node.kind.startswith("Conv") and int(node.parameters["groups"]) > 1:
                raise GraphError(f"node {node.name!r}: a {node.kind} with groups is not timed")
            operation, arrays = stateless(node, self._name(node.name), self._entering(node))
            self.values[node.name] = self._add(operation, arrays)

    def _add(self, operation: Operation, arrays: dict[str, Array]) -> Value:
        self.operations[operation.name] = operation
        self.numbers |= {f"{operation.name}/{name}": array for name, array in arrays.items()}
        return operation.name, operation.shape

    def _entering(self, node: Node) -> Value:
        """The value that enters a node: the sum of its sources."""
        first, *others = (self.values[source] for source in node.sources)
        for number, (name, shape) in enumerate(others):
            if shape != first[1]:
                raise GraphError(f"node {node.name!r}: its sources have the shapes {first[1]} and {shape}")
            total = Sum(name=self._name(f"{node.name}.sum{number or ''}"), of=(first[0], name), shape=shape)
            first = self._add(total, {})
        return first

    def _neurons(self, node: Node) -> Value:
        of, shape = self._entering(node)
        keys = [*PARAMETERS[node.kind], *(["v_reset"] if node.kind in SPIKING else [])]
        given = {key: _fitting(node, key, shape) for key in keys}
        if "tau_mem" in given:
            given["tau"] = given.pop("tau_mem")
        self._require(node, given)
        back = coming_back(node, node.back, shape) if node.back is not None else {}
        adds = bool(np.any(given.get("v_leak", 0.0) != given.get("v_reset", 0.0)))
        adds |= bool(np.any(back.get("back", 0.0)))
        name = self._name(node.name)
        of = self._current(node, name, (of, shape), {**given, "back": back.get("back", np.zeros(()))}, adds)
        spans = {key: (float(given[key].min()), float(given[key].max())) for key in ("tau", "tau_syn") if key in given}
        options: dict[str, Any] = {"name": name, "of": (of,), "shape": shape, "kind": node.kind} | spans
        if node.kind in INTEGRATING:
            return self._add(Leaky(**options), given)
        return self._add(Site(**options, recurrent=bool(back)), given | back)

    def _require(self, node: Node, given: dict[str, Array]) -> None:
        """Raise GraphError for constants that no neuron of a case has."""
        where = f"node {node.name!r}"
        height = given.get("v_threshold", given.get("threshold", 1.0)) - given.get("v_reset", 0.0)
        if not np.all(height > 0):
            named = "threshold" if node.kind == "Threshold" else "v_threshold"
            raise GraphError(f"{where}: {named} should be above {'0' if node.kind == 'Threshold' else 'v_reset'}")
        if node.kind in INTEGRATING and given["tau"].min() < given["tau"].max():
            raise GraphError(f"{where}: a {node.kind} whose neurons have a tau of their own is not read")
        if "tau_syn" not in given:
            return
        if np.any(given["v_leak"] != given.get("v_reset", 0.0)):
            raise GraphError(f"{where}: a {node.kind} whose v_leak is not v_reset is not read")
        if given["tau_syn"].min() < given["tau_syn"].max():
            raise GraphError(f"{where}: neurons with a tau_syn of their own are not read")

    def _current(self, node: Node, name: str, value: Value, given: dict[str, Array], adds: bool) -> str:
        """The operation before neurons, which gives them their current: the one that is there, if it can."""
        of, shape = value
        operation = self.operations.get(of)
        takers = [
            each for each in self.graph.nodes if any(self.values.get(source, ("",))[0] == of for source in each.sources)
        ]
        if isinstance(operation, FITTING) and takers == [node] and _fits(operation, given):
            if adds and not operation.biased:
                bias = np.zeros(shape[:1] if isinstance(operation, Linear | Convolution) else shape)
                operation = replace(operation, biased=True)
                self._add(operation, {"bias": bias})
            return of
        arrays = {"weight": np.ones(shape)} | ({"bias": np.zeros(shape)} if adds else {})
        return self._add(Scaling(name=f"{name}.current", of=(of,), shape=shape, biased=adds), arrays)[0]

    def _end(self, node: Node) -> None:
        of, shape = self._entering(node)
        given, expected = _without_ones(self.graph.output_shape), _without_ones(shape)
        if given != expected and (not expected or given[-len(expected) :] != expected):
            raise GraphError(f"its output has the shape {shape}, not that of Output, {self.graph.output_shape}")
        is_last = bool(self.operations) and next(reversed(self.operations)) == of
        if not is_last:
            raise GraphError(f"node {node.name!r}: what comes out is not the value of the last node")
        if len(shape) > 1:
            of, _ = self._add(Flatten(name=self._name("output"), of=(of,), shape=(int(np.prod(shape)),)), {})
        self.output = of

    def _name(self, name: str) -> str:
        """A name without signs that a text has its own use for, which no operation has."""
        plain = re.sub(r"[^\w.-]", "_", name) or "_"
        while plain == INPUT or plain in self.operations:
            plain += "_"
        return plain


def _convolution(node: Node, options: dict[str, Any], shape: tuple[int, ...]) -> tuple[Operation, dict[str, Array]]:
    rank, given = {"Conv1d": 1, "Conv2d": 2}[node.kind], node.parameters
    weight = given["weight"]
    weight = _whole(weight, int(given["groups"]))
    if weight.ndim != rank + 2 or len(shape) != rank + 1 or shape[0] != weight.shape[1]:
        raise _misfit(node, shape)
    size, dilation, stride = weight.shape[2:], _sizes(node, "dilation", rank, 1), _sizes(node, "stride", rank, 1)
    spans = tuple((length - 1) * step + 1 for length, step in zip(size, dilation, strict=True))
    padding = _padding(node, spans, stride)
    leaving = _leaving(node, shape, size, stride, padding, dilation)
    sizes = {"inputs": weight.shape[1], "size": size, "stride": stride, "padding": padding, "dilation": dilation}
    bias = np.broadcast_to(given["bias"], weight.shape[:1])
    return Convolution(**options, shape=(len(weight), *leaving), biased=True, **sizes), {"weight": weight, "bias": bias}


def _whole(weight: Array, groups: int) -> Array:
    """The kernel of a convolution with groups, with zeros between channels of different groups."""
    outputs, inputs = weight.shape[:2]
    whole = np.zeros((outputs, inputs * groups, *weight.shape[2:]))
    for channel, kernel in enumerate(weight):
        first = channel * groups // outputs * inputs
        whole[channel, first : first + inputs] = kernel
    return whole


def _padding(node: Node, spans: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...]:
    padding = node.parameters["padding"]
    if isinstance(padding, str):
        if padding == "valid":
            return (0,) * len(spans)
        if padding != "same" or set(stride) != {1} or any(span % 2 == 0 for span in spans):
            raise GraphError(f"node {node.name!r}: padding {padding!r} is not read here; write it as numbers")
        return tuple(span // 2 for span in spans)
    return _sizes(node, "padding", len(spans), 0)


def _leaving(
    node: Node,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> tuple[int, ...]:
    """The places that windows leave of an image [channels, *places]."""
    if len(shape) != len(size) + 1:
        raise _misfit(node, shape)
    spans = [(length - 1) * step + 1 for length, step in zip(size, dilation, strict=True)]
    places = zip(shape[1:], spans, stride, padding, strict=True)
    leaving = tuple((length + 2 * around - span) // step + 1 for length, span, step, around in places)
    if min(leaving) < 1:
        raise _misfit(node, shape)
    return leaving


def coming_back(node: Node, back: Node, shape: tuple[int, ...]) -> dict[str, Array]:
    """The weights [N, N] of a neuron's own spikes, and what else comes with them, in the shape of the neurons."""
    neurons = int(np.prod(shape))
    if back.kind == "Scale":
        return {"recurrent": np.diag(np.broadcast_to(np.ravel(back.parameters["scale"]), neurons))}
    weight = back.parameters["weight"]
    if weight.shape != (neurons, neurons):
        raise GraphError(f"node {back.name!r}: a weight of shape {weight.shape} does not fit {neurons} neurons")
    bias = np.broadcast_to(np.ravel(back.parameters.get("bias", 0.0)), neurons).reshape(shape)
    return {"recurrent": weight} | ({"back": bias} if "bias" in back.parameters else {})


def _fits(operation: Operation, given: dict[str, Array]) -> bool:
    """Whether an operation can scale a current so: a convolution has one number for all places of a channel."""
    if not isinstance(operation, Convolution):
        return True
    whole = (np.broadcast_to(each, operation.shape).reshape(operation.shape[0], -1) for each in given.values())
    return all(bool((each == each[:, :1]).all()) for each in whole)


def _fitting(node: Node, key: str, shape: tuple[int, ...]) -> Array:
    """A parameter of a node with a value of this shape: one number, or one for each neuron."""
    array = np.asarray(node.parameters[key], np.float64)
    array = array.reshape(()) if array.size == 1 else array
    if array.ndim and array.shape != shape:
        raise GraphError(f"node {node.name!r}: {key} of shape {array.shape} does not fit a value of shape {shape}")
    return np.asarray(array.flat[0]) if (array == array.flat[0]).all() else array


def _sizes(node: Node, key: str, rank: int, least: int) -> tuple[int, ...]:
    """Whole numbers of a parameter, one for each axis. Raises GraphError for one below the `least`."""
    numbers = np.broadcast_to(node.parameters[key], rank)
    if (numbers < least).any() or (numbers != np.round(numbers)).any():
        raise GraphError(f"node {node.name!r}: {key} should be whole numbers from {least} on, not {numbers.tolist()}")
    return tuple(int(each) for each in numbers)


def _axis(node: Node, key: str, axes: int) -> int:
    axis = int(node.parameters[key])
    if not -axes <= axis < axes:
        raise GraphError(f"node {node.name!r}: {key} {axis} is no axis of a value with {axes}")
    return axis % axes


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without axes of length 1: exporters write them for the time and the batch."""
    return tuple(size for size in shape if size != 1)


def _misfit(node: Node, shape: tuple[int, ...]) -> GraphError:
    return GraphError(f"node {node.name!r}: an input of shape {shape} does not fit")
