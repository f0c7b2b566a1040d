"""The part that the backends share for networks of operations."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.cases.answer import Recording
from snnbench.cases.case import Case
from snnbench.cases.operations import Linear, Neurons, Normalisation, Operation, Sum
from snnbench.cases.problem import Graph


@dataclass(frozen=True, slots=True)
class NetworkParts:
    """A network of operations without its neurons: the operations, their parameters on the device, and the order."""

    operations: Sequence[Operation]
    parameters: Mapping[str, list[Any]]
    order: str


def check(case: Case, variant: Variant, formats: Collection[str]) -> None:
    """Refuse a network that has no proof so far, or not in one of these number formats. Raises Unsupported."""
    if variant.latency:
        raise Unsupported(f"these neurons answer {variant.latency} step late, which adds up from site to site")
    if variant.inference_only:
        raise Unsupported(f"a network is proved with its gradients: {variant.inference_only}")
    if variant.deviation:
        raise Unsupported("a network is proved at every site, so a neuron that deviates is not run in one")
    if case.product_format not in formats:
        raise Unsupported(f"networks run in {', '.join(formats)} here, so far (asked for {case.product_format})")


def require_frozen(problem: Graph, compiler: str) -> None:
    """Refuse statistics of a batch to a compiler, because one bit of them may move a spike. Raises Unsupported."""
    if any(operation.mixes_images for operation in problem.operations()):
        raise Unsupported(
            f"{compiler} sums statistics of a batch in another order when it is recorded: use frozen statistics"
        )


def currents(operations: Sequence[Operation]) -> set[str]:
    """The values that are currents: of normalisations, of linear layers before neurons, and sums of such a value."""
    at_sites = {name for operation in operations if isinstance(operation, Neurons) for name in operation.of}
    names: set[str] = set()
    for operation in operations:
        is_linear = isinstance(operation, Linear) and operation.name in at_sites
        is_sum = isinstance(operation, Sum) and not names.isdisjoint(operation.of)
        if isinstance(operation, Normalisation) or is_linear or is_sum:
            names.add(operation.name)
    return names


def leading(order: str) -> str:
    """The order of a network of operations: a library's order of time and batch, and all else after them."""
    return order.replace("N", "") + "N"


def put(recording: Recording, name: str, value: NDArray[Any], cotangent: NDArray[Any], scale: float) -> None:
    """Record a value, which the library holds times `scale`, and its gradient, in the harness's units."""
    unscaled = scale == 1.0
    recording.values[name] = value if unscaled else value.astype(np.float64) / scale
    recording.cotangents[name] = cotangent if unscaled else cotangent.astype(np.float64) * scale
