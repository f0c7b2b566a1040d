"""The part that the backends share for networks of operations."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.cases import recurrence
from snnbench.cases.answer import Recording
from snnbench.cases.case import Case
from snnbench.cases.operations import Neurons, Normalisation, Operation, Sum
from snnbench.cases.problem import Graph, Problem


@dataclass(frozen=True, slots=True)
class NetworkParts:
    """A network of operations without its neurons: the operations, their parameters on the device, and the order.

    `sites` are the cases of the neurons at each site. A decay for each neuron is an array on the device.
    """

    operations: Sequence[Operation]
    parameters: Mapping[str, list[Any]]
    order: str
    sites: Mapping[str, Case]


def given(
    problem: Problem, variant: Variant, place: Callable[[Any], Any], weights: Callable[..., Any]
) -> list[Any] | NetworkParts:
    """The `weights` of each layer of a stack, or the parts of a network of operations, where `place` puts arrays."""
    if isinstance(problem, Graph):
        return parts(problem, variant, place)
    layers = recurrence.split_all(problem.layers(), problem.case.entering)
    return [weights(*(each if each is None else place(each) for each in layer)) for layer in layers]


def parts(problem: Graph, variant: Variant, place: Callable[[Any], Any]) -> NetworkParts:
    """The parts of a problem's network, with their arrays where `place` puts them."""
    operations = problem.operations()
    placed = {name: [place(each) for each in arrays] for name, arrays in problem.parameters().items()}
    cases = {each.name: problem.neuron(each) for each in operations if isinstance(each, Neurons)}
    sites = {
        name: case.with_(beta=place(case.beta)) if isinstance(case.beta, np.ndarray) else case
        for name, case in cases.items()
    }
    return NetworkParts(operations, placed, variant.order, sites)


def check(problem: Graph, variant: Variant, formats: Collection[str]) -> None:
    """Refuse a network that has no proof so far, or not in one of these number formats. Raises Unsupported."""
    case = problem.case
    if variant.latency:
        raise Unsupported(f"these neurons answer {variant.latency} step late, which adds up from site to site")
    if variant.inference_only:
        raise Unsupported(f"a network is proved with its gradients: {variant.inference_only}")
    if variant.deviation:
        raise Unsupported("a network is proved at every site, so a neuron that deviates is not run in one")
    if case.product_format not in formats:
        raise Unsupported(f"networks run in {', '.join(formats)} here, so far (asked for {case.product_format})")
    sites = [operation for operation in problem.operations() if isinstance(operation, Neurons)]
    for site, neuron in ((site, problem.neuron(site)) for site in sites):
        if neuron is not case and (reason := variant.refusal(neuron)):
            raise Unsupported(f"{site.name}: {reason}")


def require_frozen(problem: Graph, compiler: str) -> None:
    """Refuse statistics of a batch to a compiler, because one bit of them may move a spike. Raises Unsupported."""
    if any(isinstance(operation, Normalisation) and operation.mixes_images for operation in problem.operations()):
        raise Unsupported(
            f"{compiler} sums statistics of a batch in another order when it is recorded: use frozen statistics"
        )


def scales(operations: Sequence[Operation], gains: Mapping[str, float]) -> dict[str, float]:
    """The values that neurons take times a number, with that number: the gain of the site that a value goes to.

    These are currents, and the terms of such a sum that are no spikes.
    """
    by_name, scaled = {operation.name: operation for operation in operations}, dict[str, float]()

    def scale(name: str, gain: float) -> None:
        scaled[name] = gain
        if isinstance(operation := by_name.get(name), Sum):
            for each in operation.of:
                if isinstance(by_name.get(each), Normalisation):
                    scale(each, gain)

    for operation in operations:
        if isinstance(operation, Neurons):
            scale(operation.of[0], gains[operation.name])
    return scaled


def leading(order: str) -> str:
    """The order of a network of operations: a library's order of time and batch, and all else after them."""
    return order.replace("N", "") + "N"


def put(recording: Recording, name: str, value: NDArray[Any], cotangent: NDArray[Any], scale: float) -> None:
    """Record a value, which the library holds times `scale`, and its gradient, in the harness's units."""
    unscaled = scale == 1.0
    recording.values[name] = value if unscaled else value.astype(np.float64) / scale
    recording.cotangents[name] = cotangent if unscaled else cotangent.astype(np.float64) * scale
