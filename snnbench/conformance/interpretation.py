"""Interpretations of a NIR graph: how an importer may understand the neurons of a graph, as named differences.

NIR states differential equations, and no time step. The documented interpretation is forward Euler with the time step
that is asked for. Another one is named by its differences: the time step is fixed inside the importer, the threshold is
subtracted, and so on. `interpretations` orders them by the number of differences, so that the first one with a
library's answer is the simplest explanation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from snnbench.conformance.graph import INTEGRATING, NEURONS, SPIKING, Graph

FIXED_STEP_S = 1e-4
"""The time step that several exporters and importers of NIR have as their own, in seconds."""
FIXED_DECAY = 0.9
"""The decay in a step that an importer gives to IF, which has none."""
DIFFERENCES: Mapping[str, Mapping[str, str]] = {
    "step": {
        "fixed": f"dt fixed at {FIXED_STEP_S:g} s inside",
        "steps": "tau taken as steps",
        "resistance": "dt taken as tau / (1 + R)",
        "whole": "tau cut to whole seconds",
        "product": "tau multiplied by dt",
    },
    "decay": {
        "exponential": "decay exp(-dt / tau)",
        "fixed": f"IF leaks, decay {FIXED_DECAY:g} in each step",
        "absent": "neurons left out, their input is the output",
    },
    "gain": {
        "no-resistance": "R ignored",
        "unscaled": "current not scaled by R dt / tau",
        "unscaled-synapse": "current not scaled by w_in dt / tau_syn",
    },
    "leak": {"ignored": "v_leak ignored", "bias": "v_leak added in each step"},
    "reset": {
        "zero": "reset to 0, not to v_reset",
        "subtract": "threshold subtracted",
        "late-subtract": "threshold subtracted after the decay",
        "held": "threshold subtracted, and once more for firing if the potential stays above it",
        "none": "no reset",
    },
    "spikes": {"several": "several spikes a step"},
    "latency": {"late": "output one step late"},
    "entry": {"decayed": "current decays on arrival"},
    "start": {"leak": "v starts at v_leak, not at 0"},
    "order": {"before": "membrane takes the current of the step before"},
    "readout": {"absent": "LI left out, its input is the output"},
    "back": {"ignored": "spikes that come back are ignored"},
}
"""Aspect of a neuron -> its differences from the documented interpretation, in words."""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The differences of a interpretation, by aspect; none for the documented one."""

    differences: tuple[tuple[str, str], ...] = ()

    def has(self, aspect: str, difference: str) -> bool:
        """Whether the interpretation has this difference."""
        return (aspect, difference) in self.differences

    def __str__(self) -> str:
        """The differences in words."""
        return ", ".join(DIFFERENCES[aspect][name] for aspect, name in self.differences)


DOCUMENTED = Interpretation()


def interpretations(graph: Graph, dt: float) -> Iterator[Interpretation]:
    """Every interpretation of this graph but the documented one, the interpretations with the fewest differences first.

    Differences without an effect on this graph are left out. `dt` is the time step asked for, in seconds.
    """
    possible = {aspect: [(aspect, name) for name in names] for aspect, names in _with_effect(graph, dt).items()}
    for count in range(1, len(possible) + 1):
        for aspects in combinations(possible.values(), count):
            yield from map(Interpretation, product(*aspects))


def _with_effect(graph: Graph, dt: float) -> dict[str, list[str]]:
    neurons = [node for node in graph.nodes if node.kind in NEURONS]
    kinds = {node.kind for node in neurons}
    left = {aspect: list(names) for aspect, names in DIFFERENCES.items()}

    def some(name: str, value: float) -> bool:
        return any(np.any(node.parameters.get(name, value) != value) for node in neurons)

    def drop(aspect: str, *names: Any) -> None:
        left[aspect] = [name for name in left[aspect] if name not in names]

    if dt == FIXED_STEP_S:
        drop("step", "fixed")
    if "IF" not in kinds:
        drop("decay", "fixed")
    if kinds <= {"IF"}:
        drop("step", "steps", "resistance", "whole", "product")
        drop("decay", "exponential")
    if not some("r", 1.0):
        drop("gain", "no-resistance")
    if not some("v_leak", 0.0):
        drop("leak", "ignored", "bias")
        drop("start", "leak")
        drop("order", "before")  # from a state of 0 this is an output one step late
    if not some("v_reset", 0.0):
        drop("reset", "zero")
    if kinds & set(SPIKING):
        drop("step", "whole")  # such a neuron keeps nothing, as one with tau in steps
    else:
        for aspect in ("reset", "spikes"):
            left[aspect] = []
    if not kinds & set(INTEGRATING) or kinds <= set(INTEGRATING):
        left["readout"] = []
    if not any(node.back for node in neurons):
        left["back"] = []
    if not kinds & {"CubaLI", "CubaLIF"}:
        left["order"] = []
        drop("gain", "unscaled-synapse")
    if not kinds & {"CubaLIF", *INTEGRATING}:
        left["entry"] = []
    return {aspect: names for aspect, names in left.items() if names}
