"""The workload `nir`: the network of a NIR graph, with a library's neuron at every site of neurons.

As in `network`, the harness builds all that is no spiking neuron from the framework's own modules, the same for all
libraries. The graph states differential equations; `dt` is the time step of their forward Euler. Neurons count their
potential from v_reset in units of v_threshold - v_reset, so each fires above 1 and begins and resets at 0, and the
surrogate's slope is that of this potential. NIR's own reset is the profile "zero", or "zero-attached" with its
gradient; in other profiles all libraries run the graph with another reset. What a neuron does to its current is part of
the weights before it (graphs.py). All weights and biases are trained. A time constant is not, and the graph's input has
no gradient.

The floor has the products of linear layers and the convolutions, and bytes: parameters P, input, output O, and a `size`
of bytes each. All else costs nothing, and so do the products of neurons with their own spikes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.loading import neuron_of
from snnbench.adapter.refusal import Unsupported
from snnbench.cases import case, network_reference, problem
from snnbench.cases.case import HALVES, Bounds, File, Rate
from snnbench.cases.density import densities
from snnbench.cases.operations import INPUT, Integrator, Linear, Neurons, Operation
from snnbench.cases.problem import EXAM_BETA, EXAM_SHAPE, EXAM_THRESHOLD, Array, generator, uniform
from snnbench.cases.windows import Convolution
from snnbench.workloads import graph_exam, graphs, lif

NAME = "nir"
PACKAGES = ("h5py==3.16.0",)
"""For the graph that a library's importer is held to."""
PARAMETERS: tuple[str, ...] = ("weight", "bias")
"""The parameters between the sites of a graph, each with a gradient; those of a recurrent site are its own."""
THRESHOLD = float(np.nextafter(np.float32(1), np.float32(2)))
"""NIR's neurons fire above the threshold, those of a case at it. So theirs is the next number above 1 in float32."""
EXAM_RATE = 0.4
ODD_BETA = 0.25
"""The decay of every second neuron in the exam of a site whose neurons each have their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(case.GraphCase):
    """A NIR graph on spikes of size `amplitude`, with `input_rate` spikes per step. `dt` is in seconds."""

    SIZES: ClassVar[dict[str, tuple[str, str]]] = {"batch": ("B", "batch size"), "time_steps": ("T", "time steps")}
    SAMPLES: ClassVar[str] = "samples"
    IN_KIND: ClassVar[tuple[str, ...]] = ("graph", "dt")
    DRIVEN_BY: ClassVar[tuple[str, ...]] = ("input_rate", "amplitude")
    QUIETEST: ClassVar[float] = lif.Site.QUIETEST
    beta: ClassVar[float] = 0.0  # type: ignore[misc]  # the graph has the neurons
    threshold: ClassVar[float] = THRESHOLD  # type: ignore[misc]

    workload: Literal["nir"] = "nir"
    graph: Annotated[str, File(".nir")]
    dt: Annotated[float, Bounds(0, 1e6, above=True)]
    input_rate: Rate
    amplitude: Annotated[float, Bounds(0, 1e9, above=True)]

    def row(self) -> dict[str, Any]:
        """The fields, with the name and the digest of the graph in place of its text."""
        return self.as_dict() | {"graph": f"{self.whole.name}@{self.whole.digest}"}

    @property
    def whole(self) -> graphs.Graph:
        """The graph."""
        return graphs.parse(self.graph)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of the graph. A decay that differs between neurons is None."""
        return graphs.at(self.whole, self.dt, self.time_steps)

    @property
    def lacks(self) -> str:
        """Why no neuron can do this work, in words; empty if one can."""
        if self.dtype in HALVES:
            return "NIR graphs run in float32 and float64"
        if self.dt >= (shortest := graphs.longest_step(self.whole)):
            return f"dt {self.dt:g} s should be below {shortest:g} s, the shortest time constant of {self.whole.name}"
        return ""

    @property
    def nir_graph(self) -> str:
        """The graph and the time step."""
        return f"{self.whole.name}@{self.whole.digest} dt {self.dt:g}"

    @property
    def kind(self) -> str:
        """The graph, the time step and the profile."""
        return f"NIR graph {self.whole.name}, dt {self.dt:g} s, {self.profile}"

    @property
    def neurons(self) -> int:
        """The neurons of all sites."""
        return sum(prod(each.shape) for each in self.whole.operations if isinstance(each, Neurons))

    @property
    def shape(self) -> tuple[int, int, int]:
        """[T, B, N] of the output."""
        return self.time_steps, self.batch, prod(self.whole.operations[-1].shape)

    @property
    def summed(self) -> int:
        """The terms of all steps, samples and places: a bias of a convolution has the most."""
        places = [prod(each.shape[1:]) for each in self.whole.operations if isinstance(each, Convolution)]
        return self.time_steps * self.batch * max(places, default=1)

    @property
    def input_words(self) -> str:
        """The rate and the size of the input's spikes."""
        return f"input rate {self.input_rate:g}" + (f" of {self.amplitude:g}" if self.amplitude != 1 else "")


@dataclass(frozen=True, slots=True)
class Problem(problem.Graph):
    """The arrays of a case. If `exact`, all weights are drawn, and the decays are those of the exam."""

    case: Case

    def operations(self) -> Sequence[Operation]:
        """The operations in order."""
        return [_examined(each) if self.exact else each for each in self.case.operations]

    def parameters(self) -> dict[str, list[Array]]:
        """The parameters of each operation that has some, float32."""
        return self._once("parameters", 0, self._parameters)

    def neuron(self, operation: Operation) -> lif.Site:
        """The case of the neurons at a site."""
        assert isinstance(operation, Neurons), "only neurons have a case"
        beta: Any = operation.beta
        if beta is None:
            beta = self._own_decays(operation)
        return _site(self.case, operation, beta, self.exact)

    def site(self, operation: Operation, current: NDArray[Any], cotangent: NDArray[Any]) -> lif.Problem:
        """The problem of a site's neurons by themselves: what comes back to them is part of their current."""
        return lif.alone(self.neuron(operation).with_(recurrent=False), current, cotangent)

    def chain(self) -> list[tuple[Array, Array, lif.Site]]:
        """The weight [N, M], the bias [N] and the case of the neurons of each layer. Raises Unsupported if the graph is
        no chain of layers.
        """
        operations, parameters = self.operations(), self.parameters()
        entering = [(INPUT,), *((each.name,) for each in operations[:-1])]
        kinds = [Linear, Neurons] * (len(operations) // 2)
        is_chain = len(kinds) == len(operations) and all(map(isinstance, operations, kinds))
        if not is_chain or [each.of for each in operations] != entering:
            raise Unsupported("exporters are verified on chains of Affine or Linear nodes and neurons that fire")
        neurons = [self.neuron(each) for each in operations[1::2]]
        if any(each.has_own_decays or each.recurrent for each in neurons):
            raise Unsupported("exporters are verified on layers with one decay, without recurrence")
        arrays = [parameters[each.name] for each in operations[::2]]
        return [
            (weight, bias[0] if bias else np.zeros(len(weight), np.float32), neuron)
            for (weight, *bias), neuron in zip(arrays, neurons, strict=True)
        ]

    def _own_decays(self, operation: Operation) -> NDArray[np.float64]:
        if self.exact:
            return np.where(np.arange(prod(operation.shape)) % 2, ODD_BETA, EXAM_BETA)
        return graphs.betas(self.case.whole, self.case.dt)[operation.name]

    def _parameters(self) -> dict[str, list[Array]]:
        return graph_exam.parameters(self) if self.exact else graphs.scaled(self.case.whole, self.case.dt)

    def _input(self, which: int) -> Array:
        shape = (self.case.time_steps, self.case.batch, *self.case.whole.input_shape)
        chance = uniform(self.case, "input", which, shape)
        spikes = np.less(chance, EXAM_RATE if self.exact else self.case.input_rate, out=chance)
        return spikes if self.exact else spikes * np.float32(self.case.amplitude)


def _site(whole: Case, operation: Neurons, beta: Any, exact: bool) -> lif.Site:
    fields: dict[str, Any] = {name: getattr(whole, name) for name in lif.Case.names() if name in whole.names()}
    own = {"alpha": operation.alpha, "recurrent": operation.recurrent, "terms": operation.recurrent * operation.count}
    threshold = EXAM_THRESHOLD if exact else THRESHOLD
    return lif.Site(
        **fields | own | {"workload": "lif", "neurons": operation.count, "beta": beta, "threshold": threshold}
    )


def _examined(operation: Operation) -> Operation:
    """The operation with the decays of the exam; a neuron without decay keeps having none."""
    if not isinstance(operation, Neurons | Integrator):
        return operation
    keeps: Any = {"beta": operation.beta if operation.beta in (0.0, 1.0, None) else EXAM_BETA}
    return replace(operation, **keeps, alpha=EXAM_BETA if operation.alpha else 0.0)


def exams(case: Case, drive: float | None = None) -> list[Problem]:
    """The exam of the whole graph, with weights whose currents drive every site. Raises Unsupported."""
    if drive is not None:
        raise Unsupported("a neuron of another rule is not run in networks")
    sizes = {name: size for name, size in EXAM_SHAPE.items() if name != "neurons"}
    return [_exam(case.with_(**sizes, seed=0))]


@cache
def _exam(small: Case) -> Problem:
    problem = Problem(small, exact=True)
    drawn = problem.parameters()
    for which in (0, 1):
        values = network_reference.run(problem, problem.input(which).astype(np.float64))
        for site in (each for each in problem.operations() if isinstance(each, Neurons)):
            if not graph_exam.tells(problem, site, values, drawn):
                raise Unsupported(
                    f"no drawn weights make the neurons {site.name} fire and rest in the exam of this graph"
                )
    return problem


def builder(adapter: ModuleType) -> Callable[[Any, Any, str], Any]:
    """A function that makes the graph with the adapter's `neuron` for each site. It raises Unsupported."""

    def build(case: Any, plan: Any, variant: str) -> Any:
        if not hasattr(adapter, "neuron"):
            raise Unsupported("this adapter has no function neuron(case, variant) for the sites of a network")
        if not hasattr(plan, "sites"):
            raise Unsupported("networks are built in PyTorch and in JAX only")
        neurons = {name: neuron_of(adapter, site, variant) for name, site in plan.sites.items()}
        first = next(iter(neurons.values()))
        if len({type(each) for each in neurons.values()}) > 1:
            raise Unsupported("some of these neurons run step by step in this library, and others do not")
        return first.network(plan, neurons)

    return build


def differentiated(case: Case) -> set[str]:
    """The parameters that this graph has: one without biases has no gradient of any."""
    return {name for each in case.whole.operations for name in each.parameters if name in PARAMETERS}


def products(case: Case, phase: str) -> dict[str, int]:
    """The number of products and convolutions of each kind in a pass of a phase."""
    counts: Counter[str] = Counter()
    for operation, kind, is_differentiated in _multiplying(case):
        is_product = isinstance(operation, Linear)
        names = ("current", "weight_gradient", "input_gradient") if is_product else CONVOLVED
        value, of_kernel, of_entering = names
        counts[f"{kind}.{value}"] += phase != "backward"
        if phase in ("backward", "train"):
            counts[f"{kind}.{of_kernel}"] += 1
            counts[f"{kind}.{of_entering}"] += is_differentiated
    return {name: count for name, count in counts.items() if count}


def spared(case: Case, phase: str, rates: Mapping[str, float]) -> dict[str, float]:
    """Of the products and convolutions that take the input, or spikes."""
    shares, count = densities(case.whole.operations, case.input_rate, rates), defaultdict[str, float](float)
    for operation, kind, _ in _multiplying(case):
        for name in ("current", "weight_gradient") if isinstance(operation, Linear) else CONVOLVED[:2]:
            count[f"{kind}.{name}"] += 1 - shares[operation.of[0]]
    there = products(case, phase)
    return {name: times for name, times in count.items() if name in there}


CONVOLVED = ("value", "kernel-gradient", "image-gradient")


def product_flops(case: Case, name: str) -> int:
    """FLOPs of a product or convolution by its definition; an algorithm may need fewer."""
    wanted = name.rpartition(".")[0]
    operation = next(operation for operation, kind, _ in _multiplying(case) if kind == wanted)
    return 2 * case.time_steps * case.batch * prod(operation.shape) * operation.terms


def convolutions(case: Case) -> dict[str, tuple[Convolution, tuple[int, ...]]]:
    """A convolution of each kind, with the shape of the image that enters."""
    shapes = _shapes(case)
    return {
        kind: (operation, shapes[operation.of[0]])
        for operation, kind, _ in _multiplying(case)
        if isinstance(operation, Convolution)
    }


def operands(case: Case, rows: int) -> dict[str, tuple[Array, Array, Array]]:
    """So many random `rows` of the input, the cotangent and the weight of each kind of product."""
    random, operands_of = generator(case, "operands", 0), dict[str, tuple[Array, Array, Array]]()
    for operation, kind, _ in _multiplying(case):
        if isinstance(operation, Linear):
            spikes = (random.random((rows, operation.inputs), np.float32) < case.input_rate).astype(np.float32)
            cotangent = random.standard_normal((rows, *operation.shape), np.float32)
            operands_of[f"{kind}."] = spikes, cotangent, random.standard_normal((rows, operation.inputs), np.float32)
    number = np.ones((1, 1), np.float32)
    return operands_of or {"": (number, number, number)}


def least_values(case: Case, phase: str) -> int:
    """Numbers that a pass of a phase must at least read and write."""
    output = prod(case.shape)
    more = {"inference": output, "forward": output, "backward": output, "train": 2 * output}[phase]
    gradients = _parameter_values(case) if phase in ("backward", "train") else 0
    return static_values(case) + gradients + more


def static_values(case: Case) -> int:
    """Numbers in the parameters and the input, which exist before a pass."""
    return _parameter_values(case) + case.time_steps * case.batch * prod(case.whole.input_shape)


def _multiplying(case: Case) -> Iterator[tuple[Linear | Convolution, str, bool]]:
    """Each linear layer and convolution, its kind in a word, and whether what enters it has a gradient."""
    shapes, trained = _shapes(case), set[str]()
    for operation in case.whole.operations:
        is_differentiated = not trained.isdisjoint(operation.of)
        if operation.parameters or is_differentiated:
            trained.add(operation.name)
        if isinstance(operation, Linear):
            yield operation, f"{operation.inputs}x{operation.shape[0]}", is_differentiated
        elif isinstance(operation, Convolution):
            yield operation, _kind(operation, shapes[operation.of[0]]), is_differentiated


def _kind(operation: Convolution, image: tuple[int, ...]) -> str:
    """`5x5-2x2-p1x1-d1x1_2x34x34_to_16`: kernel, stride, padding and dilation, what enters, and the channels."""
    size, stride, padding, dilation, entering = (
        "x".join(map(str, each))
        for each in (operation.size, operation.stride, operation.padding, operation.dilation, image)
    )
    return f"{size}-{stride}-p{padding}-d{dilation}_{entering}_to_{operation.shape[0]}"


def _shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {each.name: each.shape for each in case.whole.operations} | {INPUT: case.whole.input_shape}


def _parameter_values(case: Case) -> int:
    return sum(prod(shape) for operation in case.whole.operations for shape in operation.parameters.values())
