"""The graphs of the workload `nir`: their operations as text in a case, and their numbers in a file beside it.

A case is decoded where its graph's file is not: in reports, and in checks of somebody else's recording. So the text has
all shapes and time constants, and names the file of numbers by its digest. The numbers are those of the graph, whatever
the time step: `scaled` turns them into what enters neurons that count potentials in thresholds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from snnbench.cases.operations import Flatten, Integrator, Linear, Neurons, Operation, Scaling, Sum
from snnbench.cases.windows import Convolution, WindowSum
from snnbench.exits import UserError
from snnbench.files import home

Array = NDArray[np.float64]
Span = tuple[float, float]
"""The lowest and the highest number of a layer."""
FOLDER = "graphs"
"""The folder of graphs' numbers in the home folder."""
NONE = (0.0, 0.0)


class MissingGraph(UserError):
    """The numbers of a graph are not on this machine; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site(Neurons):
    """Neurons of a graph, of the NIR node `kind`, with its time constants in seconds; NONE without one."""

    kind: str = "LIF"
    tau: Span = NONE
    tau_syn: Span = NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaky(Integrator):
    """A leaky integrator of a graph, of the NIR node `kind`, with its time constants in seconds."""

    kind: str = "LI"
    tau: Span = NONE
    tau_syn: Span = NONE


KINDS: dict[str, type[Operation]] = {
    **{kind.__name__: kind for kind in (Linear, Convolution, Scaling, Sum, WindowSum, Flatten)},
    **dict.fromkeys(("LIF", "IF", "CubaLIF", "Threshold"), Site),
    **dict.fromkeys(("LI", "CubaLI"), Leaky),
}
"""The words of a text, and their operations."""
LEFT_OUT = ("name", "of", "shape", "kind", "beta", "alpha", "of_each", "time_steps")
"""Fields of an operation that a text has elsewhere, or that follow from a case."""
PART = re.compile(r"(?P<name>\S+) = (?P<kind>\w+)\((?P<of>[^()\s]+)\) (?P<shape>[\dx]+)(?P<options>( \w+=\S+)*)")
HEAD = re.compile(r"(?P<name>[\w.-]{1,100})@(?P<digest>[0-9a-f]{16}) input (?P<shape>\d+(x\d+)*)")
TEXT_LIMIT = 200_000


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph: its name, the digest of its numbers, the shape of the input, and its operations in order."""

    name: str
    digest: str
    input_shape: tuple[int, ...]
    operations: tuple[Operation, ...]

    @property
    def path(self) -> Path:
        """The file of its numbers."""
        return home() / FOLDER / f"{self.digest}.npz"

    @property
    def file(self) -> Path:
        """A copy of its NIR file."""
        return home() / FOLDER / self.digest / f"{self.name}.nir"

    def text(self) -> str:
        """The text of `parse`."""
        head = f"{self.name}@{self.digest} input {_sizes(self.input_shape)}"
        return "; ".join([head, *map(_written, self.operations)])

    def numbers(self) -> dict[str, Array]:
        """Its numbers: `OPERATION/PARAMETER` -> an array. Raises MissingGraph."""
        try:
            with np.load(self.path) as kept:
                return {name: kept[name] for name in kept.files}
        except (OSError, ValueError) as error:
            raise MissingGraph(
                f"the numbers of the graph {self.name} are not on this machine; name its file with --nir"
            ) from error


@lru_cache(maxsize=64)
def parse(text: str) -> Graph:
    """The graph of a text. Raises ValueError."""
    if len(text) > TEXT_LIMIT:
        raise ValueError(f"it is over {TEXT_LIMIT:,} characters")
    head, *parts = text.split("; ")
    if not (found := HEAD.fullmatch(head)):
        raise ValueError("expected NAME@DIGEST input SIZES, and then operations")
    operations = tuple(map(_read, parts))
    known = {"input"}
    for operation in operations:
        if unknown := set(operation.of) - known:
            raise ValueError(f"{operation.name} takes {min(unknown)}, which comes later or not at all")
        known.add(operation.name)
    if not any(isinstance(operation, Site) for operation in operations):
        raise ValueError("it has no spiking neurons")
    return Graph(found["name"], found["digest"], _shape(found["shape"]), operations)


def at(graph: Graph, dt: float, time_steps: int) -> tuple[Operation, ...]:
    """The operations of a graph at a time step `dt` in seconds, with the decays of neurons by forward Euler."""
    return tuple(_decaying(operation, dt, time_steps) for operation in graph.operations)


def _decaying(operation: Operation, dt: float, time_steps: int) -> Operation:
    if not isinstance(operation, Site | Leaky):
        return operation
    alpha = 1 - dt / operation.tau_syn[0] if operation.tau_syn != NONE else 0.0
    if isinstance(operation, Leaky):
        return replace(operation, beta=1 - dt / operation.tau[0], alpha=alpha, time_steps=time_steps)
    low, high = operation.tau
    if (low, high) == NONE:
        return replace(operation, beta=0.0 if operation.kind == "Threshold" else 1.0, alpha=alpha)
    return replace(operation, beta=None if low < high else 1 - dt / low, alpha=alpha)


def longest_step(graph: Graph) -> float:
    """The shortest time constant, in seconds: a longer time step has no decay; infinite without one."""
    leaky = [each for each in graph.operations if isinstance(each, Site | Leaky)]
    return min((each for site in leaky for each in (site.tau[0], site.tau_syn[0]) if each), default=np.inf)


def betas(graph: Graph, dt: float) -> dict[str, Array]:
    """The decay of each neuron, flat, at the sites whose neurons have their own."""
    numbers = graph.numbers()
    return {
        each.name: 1 - dt / np.broadcast_to(numbers[f"{each.name}/tau"], each.shape).ravel()
        for each in graph.operations
        if isinstance(each, Site | Leaky) and each.tau[0] < each.tau[1]
    }


def scaled(graph: Graph, dt: float) -> dict[str, list[NDArray[np.float32]]]:
    """The parameters of each operation, float32, with all that neurons do to their current in the operation before.

    A neuron v' = (v - v_reset) / (v_threshold - v_reset) decays to 0, fires at 1 and resets to 0. With gain g and
    offset c its current is g I + c:

        LIF        g = dt / tau * r / (v_threshold - v_reset)        c = dt / tau * (v_leak - v_reset) / (...)
        IF         g = dt * r / (...)                                c = 0
        CubaLIF    g = dt / tau_syn * w_in * dt / tau_mem * r / (...)
        Threshold  g = 1 / threshold
        LI, CubaLI as LIF and CubaLIF, with v_threshold - v_reset = 1 and v_reset = 0
    """
    numbers, drawn = graph.numbers(), dict[str, list[Array]]()
    sites = {each.of[0]: each for each in graph.operations if isinstance(each, Site | Leaky)}
    for operation in graph.operations:
        arrays = [numbers[f"{operation.name}/{name}"] for name in operation.parameters]
        if not arrays or isinstance(operation, Site):
            continue
        if (site := sites.get(operation.name)) is not None:
            arrays = _entering(operation, site, arrays, numbers, dt)
        drawn[operation.name] = arrays
    for site in sites.values():
        if isinstance(site, Site) and site.recurrent:
            gain, _ = _gain(site, numbers, dt)
            drawn[site.name] = [np.broadcast_to(gain, site.shape).reshape(-1, 1) * numbers[f"{site.name}/recurrent"]]
    named = {each.name: drawn[each.name] for each in graph.operations if each.name in drawn}
    return {name: [each.astype(np.float32) for each in arrays] for name, arrays in named.items()}


def _entering(
    operation: Operation, site: Site | Leaky, arrays: list[Array], numbers: Mapping[str, Array], dt: float
) -> list[Array]:
    """The weight, and the bias if there is one, of the operation before neurons, in the neurons' units."""
    gain, offset = _gain(site, numbers, dt)
    weight, *bias = arrays
    back = numbers.get(f"{site.name}/back", np.zeros(()))
    if isinstance(operation, Convolution):
        gain, offset, back = (_by_channel(each, operation.shape) for each in (gain, offset, back))
    shape = weight.shape[:1] if isinstance(operation, Linear | Convolution) else weight.shape
    gain, offset = (np.broadcast_to(each, shape) for each in (gain, offset))
    back = np.broadcast_to(back, shape)
    scaled_weight = gain.reshape(*shape, *(1,) * (weight.ndim - len(shape))) * weight
    return [scaled_weight, *(gain * (each + back) + offset for each in bias)]


def _gain(site: Site | Leaky, numbers: Mapping[str, Array], dt: float) -> tuple[Array, Array]:
    """The gain and the offset of a current."""
    own = {name.rpartition("/")[2]: each for name, each in numbers.items() if name.rpartition("/")[0] == site.name}
    if site.kind == "Threshold":
        return 1 / own["threshold"], np.zeros(())
    reset = own.get("v_reset", np.zeros(()))
    height = own["v_threshold"] - reset if "v_threshold" in own else np.ones(())
    charge = dt / own["tau"] if "tau" in own else np.asarray(dt)
    synapse = dt / own["tau_syn"] * own["w_in"] if "tau_syn" in own else np.ones(())
    offset = charge * (own["v_leak"] - reset) / height if "v_leak" in own else np.zeros(())
    return synapse * charge * own["r"] / height, offset


def _by_channel(array: Array, shape: tuple[int, ...]) -> Array:
    """The numbers of each channel of an array whose channels each have one."""
    whole = np.broadcast_to(array, shape) if array.size > 1 else np.broadcast_to(array.reshape(()), shape)
    return whole.reshape(shape[0], -1)[:, 0]


def _written(operation: Operation) -> str:
    kind = operation.kind if isinstance(operation, Site | Leaky) else type(operation).__name__
    shown = [each for each in fields(operation) if each.name not in LEFT_OUT]
    options = {
        each.name: getattr(operation, each.name) for each in shown if getattr(operation, each.name) != each.default
    }
    words = [f"{operation.name} = {kind}({','.join(operation.of)}) {_sizes(operation.shape)}"]
    return " ".join(words + [f"{name}={_word(value)}" for name, value in options.items()])


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        is_span = any(isinstance(each, float) for each in value)
        return "..".join(map(repr, dict.fromkeys(value))) if is_span else _sizes(value)
    return str(value)


def _read(part: str) -> Operation:
    match = PART.fullmatch(part)
    if not match or match["kind"] not in KINDS:
        raise ValueError(f"{part[:80]!r} is no operation")
    kind = KINDS[match["kind"]]
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name not in LEFT_OUT}
    options: dict[str, Any] = {"kind": match["kind"]} if kind in (Site, Leaky) else {}
    for word in match["options"].split():
        name, _, value = word.partition("=")
        if name not in hints:
            raise ValueError(f"{part[:80]!r}: {name} is no option of a {match['kind']}")
        options[name] = _value(hints[name], value)
    try:
        return kind(name=match["name"], of=tuple(match["of"].split(",")), shape=_shape(match["shape"]), **options)
    except TypeError as error:
        raise ValueError(f"{part[:80]!r}: {error}") from error


def _value(hint: Any, word: str) -> Any:
    if hint is bool:
        return {"yes": True, "no": False}[word] if word in ("yes", "no") else _wrong(word)
    if hint is int:
        return int(word)
    if hint == Span:
        low, _, high = word.partition("..")
        return float(low), float(high or low)
    return _shape(word)


def _wrong(word: str) -> bool:
    raise ValueError(f"{word!r} is neither yes nor no")


def _sizes(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split("x"))
