"""Operation counts: a case's footprint, sparsity and operations, as NeuroBench 2.3.0 defines them.

The spikes are those of the reference in float64, so the numbers are of the work and not of a library. They count the
forward pass over all time steps. With s samples of the batch, nz(x) the number of entries of x that are not 0, and
all sums over layers and steps:

    footprint               bytes of the parameters; the reference's neuron has no buffers
    connection sparsity     share of the weights of linear layers and convolutions that are 0, with four digits
    activation sparsity     share of the neurons' outputs that are 0
    dense operations        the pairs of an entry of a layer's input and a weight that it meets; zeros beside an image
                            are no entries
    effective operations    the pairs with neither part 0, over s. They are ACs, accumulations, in a step in which every
                            entry of the layer's input is 0, 1 or -1, and else MACs, multiplications and accumulations
    membrane updates        N for the first step, and the potentials v[t] != v[t-1] after it, over s
    neuron operations       4 for each update, and 4 T N if dense. That is the price of the leaky neuron with the reset
                            `subtract` or `zero`; there is no price without a reset

A bias is no operation. Sources: neurobench/metrics/static/footprint.py and connection_sparsity.py, and in
neurobench/metrics/workload/ activation_sparsity.py, synaptic_operations.py, membrane_updates.py, neuron_operations.py.

A network is counted as a sequence of operations, by sizes that need no values.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from snnbench import workloads
from snnbench.cases import reference
from snnbench.cases.case import PROFILES, Case
from snnbench.cases.operations import INPUT, Linear, Neurons, Operation
from snnbench.cases.problem import Graph, Problem, Stack
from snnbench.cases.rule import rule_of
from snnbench.cases.windows import Convolution
from snnbench.proof.tolerance import round_to


def network(problem: Problem) -> Sequence[Operation]:
    """The operations of a problem: its own, a stack of linear layers and their neurons, or neurons alone."""
    if isinstance(problem, Graph):
        return problem.operations()
    case = problem.case
    operations: list[Operation] = []
    last, shape, layers = INPUT, (case.neurons,), problem.layers()
    for number in range(1, case.sites + 1):
        if isinstance(problem, Stack):
            leaving, entering = layers[number - 1][0].shape
            shape = (leaving,)
            operations.append(Linear(name=f"layer {number} linear", of=(last,), shape=shape, inputs=entering))
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
            pairs += channels * prod(_inside(operation, axis, side) for axis, side in enumerate(sides))
    return pairs


def entries(case: Case, operations: Sequence[Operation]) -> int:
    """The entries of an image that enters the network."""
    first = operations[0]
    if isinstance(first, Linear):
        return first.inputs
    return prod(_image(case, first) if isinstance(first, Convolution) else first.shape)


def _image(case: Case, operation: Convolution) -> tuple[int, ...]:
    """The shape of the image that enters a convolution."""
    return next(
        image
        for other, image in workloads.of(case).convolutions(case).values()
        if replace(other, name=operation.name, of=operation.of) == operation
    )


def _inside(operation: Convolution, axis: int, side: int) -> int:
    """The (window, entry) pairs along an axis that read an entry of an image with this side, and no zero beside it."""
    padding, reach = operation.padding[axis], operation.dilation[axis] * (operation.size[axis] - 1)
    starts = range(0, side + 2 * padding - reach, operation.stride[axis])
    inside = range(padding, side + padding)
    return sum(start + entry in inside for start in starts for entry in range(0, reach + 1, operation.dilation[axis]))


Array = NDArray[np.float64]

DEFINITIONS = "NeuroBench 2.3.0"
"""The release whose definitions these are."""
NUMBER_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
PRICES = {"subtract": 4, "zero": 4}
"""Operations of a leaky neuron in a step, by its reset (`neuron_ops_reset_operations`)."""
MOST_PRODUCTS = 4 * 10**10
"""Multiplications of the reference, in float64: some ten seconds on two CPUs."""
MOST_VALUES = 5 * 10**7
"""Values of all layers and steps that the reference keeps: 400 MB, and a few times as much while it runs."""
MOST_DRAWN = 2 * 10**8
"""Entries of the whole input and of the parameters, which are drawn before samples are left out: 800 MB."""
FORWARD_ALIKE = {"device": "cpu", "threads": 1, "surrogate": "fast_sigmoid", "slope": 1.0, "input_gradient": True}
"""Values for the fields that the forward pass does not depend on."""


@dataclass(frozen=True, slots=True)
class Traced:
    """The counts of a forward pass over the first `samples` of a batch; operations and updates are per sample.

    None is a number that NeuroBench does not define for the case.
    """

    samples: int
    connection_sparsity: float | None
    activation_sparsity: float
    activation_sparsity_by_layer: Mapping[str, float] = field(hash=False)
    effective_macs: float
    effective_acs: float
    membrane_updates: float
    effective_neuron_operations: float | None


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one case; operations are per sample.

    If `traced` is None, or of a part of the batch, `reason` says why. `dense_neuron_operations` is None for a neuron
    without a price.
    """

    case: Case
    footprint_bytes: int
    parameters: int
    dense_operations: int
    dense_neuron_operations: int | None
    traced: Traced | None
    reason: str


def forward_work(case: Case) -> Case:
    """The case with fixed values for all that leaves the forward pass and its numbers as they are."""
    changes = {name: value for name, value in FORWARD_ALIKE.items() if name in case.names()}
    detached = next(detach for reset, detach in PROFILES.values() if reset == case.reset)
    if case.product_format == case.dtype:
        changes["precision"] = "ieee"
    return case.with_(**changes, detach_reset=detached)


def by_work(cases: Iterable[Case]) -> dict[Case, list[Case]]:
    """The cases with the same forward pass, by `forward_work`, in the order of the first of each."""
    groups: dict[Case, list[Case]] = {}
    for case in dict.fromkeys(cases):
        groups.setdefault(forward_work(case), []).append(case)
    return groups


def count(case: Case, whole: bool = False) -> Counts:
    """The counts of a case; of the first samples of the batch if all are too many, unless the `whole` must run."""
    return of_problem(workloads.of(case).Problem(case), whole)


def of_problem(problem: Problem, whole: bool = False) -> Counts:
    """The counts of a problem's first content."""
    case, operations = problem.case, network(problem)
    shapes = [shape for operation in operations for shape in operation.parameters.values()]
    parameters = sum(prod(shape) for shape in shapes)
    neurons = sum(prod(operation.shape) for operation in operations if isinstance(operation, Neurons))
    price = PRICES.get(case.reset)
    samples, reason = (case.batch, "") if whole and not case.is_fed else affordable(case, operations, parameters)
    return Counts(
        case=case,
        footprint_bytes=parameters * NUMBER_BYTES[case.dtype],
        parameters=parameters,
        dense_operations=case.time_steps * dense(case, operations),
        dense_neuron_operations=None if price is None else price * case.time_steps * neurons,
        traced=_of_trace(problem, operations, samples) if samples else None,
        reason=reason,
    )


def affordable(case: Case, operations: Sequence[Operation], parameters: int) -> tuple[int, str]:
    """The number of samples that the reference can run, and why that is not the batch."""
    if case.is_fed:
        return 0, "not computed: the input is read from the files of a dataset"
    products = case.time_steps * dense(case, operations)
    values = case.time_steps * sum(prod(operation.shape) for operation in operations)
    drawn = case.time_steps * case.batch * entries(case, operations) + parameters
    if drawn > MOST_DRAWN:
        return 0, f"not computed: {drawn:.2g} numbers to draw, and the limit is {MOST_DRAWN:.0e}"
    samples = min(case.batch, MOST_VALUES // values, MOST_PRODUCTS // products if products else case.batch)
    if samples == case.batch:
        return samples, ""
    if any(operation.mixes_images for operation in operations):
        return 0, "not computed: the batch is too large, and its statistics need all samples"
    if not samples:
        return 0, f"not computed: a sample has {products:.2g} products and {values:.2g} values, over the limit"
    return samples, f"the first {samples} of {case.batch} samples"


def _of_trace(problem: Problem, operations: Sequence[Operation], samples: int) -> Traced:
    """The counts that need the values of a forward pass over the first `samples`."""
    case = problem.case
    rule, weights = rule_of(case), _parameters(problem, operations)
    entering = round_to(problem.input(0)[:, :samples], case.product_format)
    values: dict[str, Array] = {INPUT: entering.reshape(-1, *entering.shape[2:])}
    macs = acs = 0
    sparsities: dict[str, float] = {}
    spikes = outputs = updates = 0
    for operation in operations:
        arrays = [values[name] for name in operation.of]
        if isinstance(operation, Neurons):
            trace = reference.forward(arrays[0].reshape(case.time_steps, -1, *operation.shape), case)
            after = rule.after_reset(trace.potential, trace.spikes)
            updates += after[0].size + int(np.count_nonzero(after[1:] != after[:-1]))
            fired = int(np.count_nonzero(trace.spikes))
            sparsities[operation.name] = (trace.spikes.size - fired) / trace.spikes.size
            spikes, outputs = spikes + fired, outputs + trace.spikes.size
            values[operation.name] = trace.spikes.reshape(arrays[0].shape)
            continue
        own = weights.get(operation.name, [])
        if isinstance(operation, Linear | Convolution):
            accumulations, multiplications = _effective(operation, own[0], arrays[0], case.time_steps)
            acs, macs = acs + accumulations, macs + multiplications
        values[operation.name] = operation.value(arrays, own)
    price = PRICES.get(case.reset)
    return Traced(
        samples=samples,
        connection_sparsity=_connection_sparsity(operations, weights),
        activation_sparsity=(outputs - spikes) / outputs,
        activation_sparsity_by_layer=sparsities,
        effective_macs=macs / samples,
        effective_acs=acs / samples,
        membrane_updates=updates / samples,
        effective_neuron_operations=None if price is None else price * updates / samples,
    )


def _parameters(problem: Problem, operations: Sequence[Operation]) -> dict[str, list[Array]]:
    """The parameters of each operation that has some, rounded as the case's products see them."""
    case = problem.case
    if isinstance(problem, Graph):
        drawn = {name: list(arrays) for name, arrays in problem.parameters().items()}
    else:
        linear = [operation.name for operation in operations if isinstance(operation, Linear)]
        drawn = {name: list(layer) for name, layer in zip(linear, problem.layers(), strict=True)}
    of_products = {operation.name for operation in operations if isinstance(operation, Linear | Convolution)}
    return {
        name: [
            round_to(array, case.product_format if name in of_products and not number else case.dtype)
            for number, array in enumerate(arrays)
        ]
        for name, arrays in drawn.items()
    }


def _effective(operation: Linear | Convolution, weight: Array, entering: Array, steps: int) -> tuple[int, int]:
    """(ACs, MACs) of a layer over all steps and samples, for `entering` [T * samples, ...]."""
    by_step = entering.reshape(steps, -1, *entering.shape[1:])
    image, binary = np.zeros((1, *entering.shape[1:])), (weight != 0).astype(np.float64)
    own = [binary] if isinstance(operation, Convolution) else [binary, np.zeros(operation.shape)]
    met = np.asarray(operation.backward([image], own, np.ones((1, *operation.shape)))[0][0])
    pairs = np.tensordot(np.count_nonzero(by_step, axis=1), met, met.ndim)
    is_spiking = np.isin(by_step, (-1.0, 0.0, 1.0)).reshape(steps, -1).all(1)
    return round(float(pairs[is_spiking].sum())), round(float(pairs[~is_spiking].sum()))


def _connection_sparsity(operations: Sequence[Operation], parameters: Mapping[str, list[Array]]) -> float | None:
    weights = [parameters[each.name][0] for each in operations if isinstance(each, Linear | Convolution)]
    if not weights:
        return None
    zeros = sum(weight.size - int(np.count_nonzero(weight)) for weight in weights)
    return round(zeros / sum(weight.size for weight in weights), 4)
