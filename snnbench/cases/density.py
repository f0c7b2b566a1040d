"""The share of numbers that are not 0 in each value of a network of operations, as far as it is known."""

from collections.abc import Mapping, Sequence

from snnbench.cases.operations import INPUT, Flatten, Neurons, Operation, Sum
from snnbench.cases.windows import MaximumPool, WindowSum


def densities(network: Sequence[Operation], input_rate: float, rates: Mapping[str, float]) -> dict[str, float]:
    """The share of each value, by name, for the `rates` of sites of neurons; 1 where a value may have no zeros.

    Pools and sums of spikes count as the spikes do, which are no more: a program may pool or add up its currents.
    """
    shares = {INPUT: input_rate}
    for operation in network:
        match operation:
            case Neurons():
                shares[operation.name] = rates.get(operation.name, 1.0)
            case Flatten() | MaximumPool() | WindowSum() | Sum():
                shares[operation.name] = min(shares[name] for name in operation.of)
            case _:
                shares[operation.name] = 1.0
    return shares
