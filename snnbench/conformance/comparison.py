"""The comparison of a library's output with a NIR graph, position by position, and the search for the cause."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from snnbench.conformance.graph import SPIKING, Array
from snnbench.conformance.interpretation import DOCUMENTED, Interpretation, interpretations
from snnbench.conformance.network import BUSIEST, Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A library's output beside the documented interpretation of the graph.

    `differing` of `compared` positions differ by more than rounding explains, the first at (t, sample, neuron). `rate`
    and `expected_rate` are spikes per neuron and step, None for an output without spikes; `most_spikes` is the largest
    output in a step. `cause` names the interpretation that has the library's output at every position; it is
    empty if none has, if nothing differs, and if the library hardly fires or hardly rests, as in many interpretations.
    """

    compared: int
    differing: int
    first: tuple[int, int, int] | None = None
    got: float | None = None
    expected: float | None = None
    rate: float | None = None
    expected_rate: float | None = None
    most_spikes: int | None = None
    cause: str = ""
    differences: tuple[tuple[str, str], ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """As a document: tuples become lists."""
        document = {name: getattr(self, name) for name in self.__slots__}
        return document | {
            "first": list(self.first) if self.first else None,
            "differences": [list(pair) for pair in self.differences],
        }


class WrongShape(ValueError):
    """The library's output has another shape, or numbers that are not finite; the message says which."""


def compare(network: Network, got: Array) -> Comparison:
    """Compare the output [T, B, ...] of a library with the documented interpretation; name a cause.

    Raises WrongShape.
    """
    answers = list(network.answer())
    expected = np.array([answer.output for answer in answers])
    if got.shape != expected.shape:
        raise WrongShape(f"output of shape {list(got.shape)}, expected {list(expected.shape)}")
    if not np.isfinite(got).all():
        raise WrongShape("output with numbers that are not finite")
    spiking = network.graph.last.kind in SPIKING
    rates: dict[str, Any] = {}
    if spiking:
        rates = {"expected_rate": float(expected.mean())}
        if np.array_equal(got, np.round(got)):
            rates |= {"rate": float(got.mean()), "most_spikes": int(got.max())}
    if agrees(network, DOCUMENTED, got):
        return Comparison(compared=got.size, differing=0, **rates)
    tolerance = 0.0 if spiking else np.array([answer.tolerance for answer in answers])
    differs = (np.abs(got - expected) > tolerance).reshape(*got.shape[:2], -1)
    t, sample, neuron = (int(index) for index in np.argwhere(differs)[0])
    # Many interpretations are silent, and many are saturated.
    telling = "rate" not in rates or (got.any() and (got > 0).mean() <= BUSIEST)
    possible = interpretations(network.graph, network.dt) if telling else ()
    cause = next((interpretation for interpretation in possible if agrees(network, interpretation, got)), None)
    return Comparison(
        compared=got.size,
        differing=int(differs.sum()),
        first=(t, sample, neuron),
        got=float(got.reshape(differs.shape)[t, sample, neuron]),
        expected=float(expected.reshape(differs.shape)[t, sample, neuron]),
        cause=str(cause or ""),
        differences=cause.differences if cause else (),
        **rates,
    )


def agrees(network: Network, interpretation: Interpretation, got: Array) -> bool:
    """Whether the output is that of a interpretation at every position, up to rounding.

    The resets follow the library's spikes, and each spike is judged by itself.
    """
    given = got if network.graph.last.kind in SPIKING else None
    answers = zip(network.answer(interpretation, given), got, strict=True)
    return all(bool((np.abs(values - answer.output) <= answer.tolerance).all()) for answer, values in answers)
