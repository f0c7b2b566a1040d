"""The reference of a NIR graph: its nodes in float64, with bounds for the rounding of a library in float32."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from snnbench.conformance.conversion import stateless
from snnbench.conformance.graph import NEURONS, SPIKING, Array, Graph, GraphError, Node
from snnbench.conformance.interpretation import DOCUMENTED, Interpretation
from snnbench.conformance.neuron import EPSILON, Step, steps

RATES = (0.05, 0.1, 0.2, 0.4)
"""The input of sample b has this many spikes per step, RATES[b % 4], so that neurons are driven weakly and strongly."""
FEWEST_SPIKES, BUSIEST = 10, 0.9
"""The fewest spikes of a node in all, and the most in a step, that tell one interpretation from another."""
Signal = tuple[Array, Array]
"""Values [T, B, ...], and the bounds of their errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """The input of a graph: T steps of B samples, with `rate` spikes per step of size `amplitude`.

    Without a rate each sample has one of RATES. `seed` draws the spikes.
    """

    time_steps: int
    batch: int
    seed: int
    rate: float | None = None
    amplitude: float = 1.0


def inputs(graph: Graph, given: Input) -> Array:
    """Input spikes [T, B, ...] of 0 and the amplitude."""
    batch = given.batch
    rates = np.array([given.rate or RATES[sample % len(RATES)] for sample in range(batch)])
    rates = rates.reshape(1, batch, *(1 for _ in graph.input_shape))
    drawn = np.random.default_rng(given.seed).random((given.time_steps, batch, *graph.input_shape))
    return (drawn < rates).astype(np.float64) * given.amplitude


def check(graph: Graph, dt: float) -> None:
    """Raise GraphError for a graph whose shapes do not fit, and for a time step at which forward Euler diverges.

    Importers are not verified on graphs whose spikes come back to a neuron, nor on Threshold.
    """
    for node in graph.nodes:
        if node.back is not None or node.kind == "Threshold":
            what = "a Threshold" if node.back is None else "spikes that come back to it"
            raise GraphError(f"node {node.name!r}: importers are not verified on {what}, so far; `run --nir` times it")
        taus = [node.parameters[name] for name in ("tau", "tau_syn", "tau_mem") if name in node.parameters]
        if node.kind in NEURONS and any(np.any(dt > 2 * tau) for tau in taus):
            raise GraphError(f"node {node.name!r}: forward Euler diverges at dt {dt:g}, above twice its tau")
    try:
        (answer,) = Network(graph, inputs(graph, Input(time_steps=1, batch=1, seed=0)), dt).answer()
    except ValueError as error:
        raise error if isinstance(error, GraphError) else GraphError(f"its shapes do not fit: {error}") from error
    if answer.output.shape[1:] != graph.output_shape:
        raise GraphError(
            f"its output has the shape {answer.output.shape[1:]}, not that of Output, {graph.output_shape}"
        )


def hindrance(network: "Network") -> str:
    """Why the graph proves nothing on this input; empty if it does."""
    for name, spikes in network.spikes().items():
        if (count := int(np.count_nonzero(spikes))) < FEWEST_SPIKES or count > BUSIEST * spikes.size:
            word, change = ("silent", "raise") if count < FEWEST_SPIKES else ("busy", "lower")
            rate = f"{count / spikes.size:.3g} spikes per step"
            return f"{name!r} is too {word} to prove anything: {rate}; {change} --input-rate or --amplitude"
    return ""


class Network:
    """A graph on one input. `answer` gives its output in a interpretation, step by step."""

    def __init__(self, graph: Graph, given: Array, dt: float) -> None:
        """`given` [T, B, ...] enters the graph; `dt` is the time step in seconds. Raises GraphError."""
        self.graph, self.dt = graph, dt
        self._input: Signal = given, np.zeros_like(given)
        self._fixed: dict[str, Signal] = {}
        self._signals(DOCUMENTED, self._fixed)
        moving = self._moving()
        self._fixed = {name: signal for name, signal in self._fixed.items() if name not in moving}

    def answer(self, interpretation: Interpretation = DOCUMENTED, given: Array | None = None) -> Iterator[Step]:
        """The output in each step; the resets of the last neurons follow their spikes if they are `given`."""
        signals = dict(self._fixed)
        with np.errstate(all="ignore"):  # a interpretation may be unstable
            self._signals(interpretation, signals)
            last = self.graph.last
            if last.kind in NEURONS:
                yield from steps(last, interpretation, self.dt, *_sum(signals, last), given)
            else:
                yield from map(Step, *signals[last.name])

    def spikes(self) -> dict[str, Array]:
        """The spikes [T, B, ...] of each node that fires, as documented."""
        signals: dict[str, Signal] = {}
        self._signals(DOCUMENTED, signals)
        last = self.graph.last
        signals[last.name] = np.array([step.output for step in self.answer()]), np.zeros(0)
        return {node.name: signals[node.name][0] for node in self.graph.nodes if node.kind in SPIKING}

    def _signals(self, interpretation: Interpretation, signals: dict[str, Signal]) -> None:
        """Add the signals of all nodes that are missing, but for those of the last neurons and of the output."""
        for node in self.graph.nodes:
            if node.name in signals or node.kind == "Output" or (node is self.graph.last and node.kind in NEURONS):
                continue
            if node.kind == "Input":
                signals[node.name] = self._input
            elif node.kind in NEURONS:
                answers = list(steps(node, interpretation, self.dt, *_sum(signals, node)))
                tolerances = np.array([answer.tolerance for answer in answers])
                signals[node.name] = np.array([answer.output for answer in answers]), tolerances
            else:
                signals[node.name] = _mapped(node, *_sum(signals, node))

    def _moving(self) -> set[str]:
        """The nodes whose signal depends on the interpretation: neurons, and every node behind them."""
        moving: set[str] = set()
        for node in self.graph.nodes:
            if node.kind in NEURONS or moving & set(node.sources):
                moving.add(node.name)
        return moving


def _sum(signals: dict[str, Signal], node: Node) -> Signal:
    values, errors = zip(*(signals[source] for source in node.sources), strict=True)
    return sum(values[1:], values[0]), sum(errors[1:], errors[0])


def _mapped(node: Node, x: Array, error: Array) -> Signal:
    """The output of a node without a state. Raises GraphError if its input does not fit."""
    operation, parameters = stateless(node, node.name, ("", x.shape[2:]))
    arrays = list(parameters.values())

    def value(images: Array, given: list[Array]) -> Array:
        result = operation.value([images.reshape(-1, *x.shape[2:])], given)
        return result.reshape(*x.shape[:2], *operation.shape)

    absolute = [np.abs(each) for each in arrays]
    size = value(np.abs(x), absolute)
    weights = [each * (name == "weight") for name, each in zip(parameters, absolute, strict=True)]
    return value(x, arrays), value(error, weights) + (operation.terms + 1) * EPSILON * size
