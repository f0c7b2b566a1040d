"""The reference of a NIR graph: its nodes in float64, with bounds for the rounding of a library in float32."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from snnbench.conformance import graph as graphs
from snnbench.conformance.conversion import stateless
from snnbench.conformance.graph import NEURONS, SPIKING, Array, Graph, Node
from snnbench.conformance.interpretation import DOCUMENTED, Interpretation
from snnbench.conformance.neuron import EPSILON, ROUNDINGS, Signal, Step, steps

RATES = (0.25, 0.5, 1.0, 2.0)
"""The input rate of each sample, in input rates of the case."""
FEWEST_SPIKES, BUSIEST = 10, 0.9
"""The fewest spikes of a node in all, and the most in a step, that tell one interpretation from another."""


def of(case: Any, path: Path | None = None) -> "Network":
    """The network of a NIR graph, that of a case or another one in a file. Raises GraphError.

    Its input has a sample for each of RATES, so that neurons are driven weakly and strongly.
    """
    rates = np.minimum(1, case.input_rate * np.array(RATES)).reshape(1, -1, *(1 for _ in case.whole.input_shape))
    drawn = np.random.default_rng(case.seed).random((case.time_steps, len(RATES), *case.whole.input_shape))
    given = (drawn < rates).astype(np.float64) * case.amplitude
    return Network(graphs.read(path or case.whole.file), given, case.dt)


@cache
def hindrance(case: Any) -> str:
    """Why the graph of a case proves nothing about importers and exporters on its input; empty if it does."""
    return of(case).hindrance


class Network:
    """A graph on one input. `answer` gives its output in a interpretation, step by step."""

    def __init__(self, graph: Graph, given: Array, dt: float) -> None:
        """`given` [T, B, ...] enters the graph; `dt` is the time step in seconds. Raises GraphError."""
        self.graph, self.given, self.dt = graph, given, dt
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

    @property
    def hindrance(self) -> str:
        """Why an output that agrees proves nothing; empty if it does."""
        for name, spikes in self.spikes().items():
            if (count := int(np.count_nonzero(spikes))) < FEWEST_SPIKES or count > BUSIEST * spikes.size:
                word, change = ("silent", "raise") if count < FEWEST_SPIKES else ("busy", "lower")
                rate = f"{count / spikes.size:.3g} spikes per step"
                return f"{name!r} is too {word} to prove anything: {rate}; {change} --input-rate or --amplitude"
        return ""

    def spikes(self) -> dict[str, Array]:
        """The spikes [T, B, ...] of each node that fires, as documented."""
        signals: dict[str, Signal] = {}
        self._signals(DOCUMENTED, signals)
        last = self.graph.last
        signals[last.name] = np.array([step.output for step in self.answer()]), np.zeros(0)
        firing = (*SPIKING, "Threshold")
        return {node.name: signals[node.name][0] for node in self.graph.nodes if node.kind in firing}

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
    if node.kind == "Threshold":
        threshold = np.broadcast_to(node.parameters["threshold"], x.shape)
        margin = error + ROUNDINGS * EPSILON * np.abs(threshold)
        return (x > threshold).astype(np.float64), (np.abs(x - threshold) <= margin).astype(np.float64)
    operation, parameters = stateless(node, node.name, ("", x.shape[2:]))
    arrays = list(parameters.values())

    def value(images: Array, given: list[Array]) -> Array:
        result = operation.value([images.reshape(-1, *x.shape[2:])], given)
        return result.reshape(*x.shape[:2], *operation.shape)

    absolute = [np.abs(each) for each in arrays]
    size = value(np.abs(x), absolute)
    weights = [each * (name == "weight") for name, each in zip(parameters, absolute, strict=True)]
    return value(x, arrays), value(error, weights) + (operation.terms + 1) * EPSILON * size
