"""Counted networks: the network of a case as a sequence of operations, and the sizes that need no values."""

from collections.abc import Sequence
from math import prod

from snnbench import workloads
from snnbench.cases.case import Case
from snnbench.cases.operations import INPUT, Convolution, Linear, Neurons, Operation
from snnbench.cases.problem import Graph, Problem, Stack


def network(problem: Problem) -> Sequence[Operation]:
    """The operations of a problem: its own, a stack of linear layers and their neurons, or neurons alone."""
    if isinstance(problem, Graph):
        return problem.operations()
    case = problem.case
    operations: list[Operation] = []
    last, shape = INPUT, (problem.case.neurons,)
    for number in range(1, case.sites + 1):
        if isinstance(problem, Stack):
            operations.append(Linear(name=f"layer {number} linear", of=(last,), shape=shape, inputs=case.neurons))
            last = operations[-1].name
        operations.append(Neurons(name=f"layer {number} neurons", of=(last,), shape=shape))
        last = operations[-1].name
    return operations


def dense(case: Case, operations: Sequence[Operation]) -> int:
    """The pairs of an entry and a weight that it meets, for one image, in all linear layers and convolutions."""
    pairs = 0
    for operation in operations:
        if isinstance(operation, Linear):
            pairs += prod(operation.parameters["weight"])
        elif isinstance(operation, Convolution):
            channels, sides = prod(operation.parameters["weight"][:2]), _image(case, operation)[1:]
            pairs += channels * prod(_inside(operation, side) for side in sides)
    return pairs


def entries(case: Case, operations: Sequence[Operation]) -> int:
    """The entries of an image that enters the network."""
    first = operations[0]
    if isinstance(first, Linear):
        return first.inputs
    return prod(_image(case, first) if isinstance(first, Convolution) else first.shape)


def _image(case: Case, operation: Convolution) -> tuple[int, ...]:
    """The shape of the image that enters a convolution."""
    kind = (operation.inputs, operation.size, operation.stride, operation.padding, operation.shape)
    return next(
        image
        for other, image in workloads.of(case).convolutions(case).values()
        if (other.inputs, other.size, other.stride, other.padding, other.shape) == kind
    )


def _inside(operation: Convolution, side: int) -> int:
    """The (window, entry) pairs along an axis that read an entry of an image with this side, and no zero beside it."""
    starts = range(0, side + 2 * operation.padding - operation.size + 1, operation.stride)
    inside = range(operation.padding, side + operation.padding)
    return sum(start + entry in inside for start in starts for entry in range(operation.size))
