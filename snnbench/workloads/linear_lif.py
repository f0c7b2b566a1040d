"""The workload `linear_lif`: a stack of linear layers, each followed by leaky integrate-and-fire neurons.

The network is `layers` times a linear map followed by a layer of neurons, all `neurons` wide, over `time_steps` steps
of `batch` samples. Its floor, with M = T * B rows, N neurons, L layers and a `size` of bytes for each number:

    product                                          FLOPs     of each layer, in
    current          [M, N] x [N, N]                 2 M N^2   inference, forward, train
    weight gradient  [N, M] x [M, N]                 2 M N^2   backward, train
    input gradient   [M, N] x [N, N]                 2 M N^2   backward, train; of the first layer only if asked for

    phase               reads at the least                           writes at the least
    inference, forward  input M N, parameters P                      spikes M N
    backward            input M N, cotangent M N, and N^2 for each   gradients: P, and M N if the input's is asked for
                        input gradient
    train               input M N, cotangent M N, P                  spikes M N, gradients as backward

    least bytes = size * (values read + values written),   P = L (N^2 + N)

This is a *dense* floor: products are counted and measured in full, without credit for zeros in the input or in spikes.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from types import ModuleType
from typing import Any, ClassVar, Literal, Self

import numpy as np

from snnbench.adapter.loading import neuron_of
from snnbench.adapter.refusal import Unsupported
from snnbench.cases import case, problem
from snnbench.cases.case import HALVES, Count, CountOrNone, Rate
from snnbench.cases.problem import EXAM_BETA, EXAM_SHAPE, EXAM_THRESHOLD, Array, Layer, gaussian, generator, uniform

NAME = "linear_lif"
PARAMETERS: tuple[str, ...] = ("weight", "bias")
"""The parameters of a layer, each with a gradient."""
InputKind = Literal["spikes", "gaussian"]
WEIGHT_SCALE = 0.9
"""Standard deviation of the current that a layer gets from its input: about 0.14 spikes per step at beta = 0.9."""
BIAS_SCALE = 0.05
RECURRENT_SCALE, RECURRENT_RATE = 0.5, 0.15
"""Standard deviation of the current that a recurrent layer gets from its own spikes, at so many spikes per step."""
EXAM_STEPS = 6
"""Time steps of the exam in chunks: two chunks of three, and three of two."""
DEEPEST_WHOLE = 2
"""The most layers in float32 whose whole answer is predicted: each layer more puts more samples on another path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(case.Case):
    """A stack of linear layers and their neurons: what all cases of one have.

    The input is 0 or 1 with `input_rate` spikes per step (`input_kind` "spikes"), or numbers from the standard normal
    distribution at a share `input_rate` of all places, and 0 elsewhere ("gaussian").
    """

    input_kind: InputKind = "spikes"
    input_rate: Rate
    input_gradient: bool

    @property
    @abstractmethod
    def layer_widths(self) -> tuple[int, ...]:
        """The width of the input, and of each layer."""

    @abstractmethod
    def cut(self, start: int, count: int) -> Self:
        """The case of so many layers from the one of number `start` on."""

    @abstractmethod
    def of_exam(self, layers: int) -> Self:
        """The case in the shape of the exam, with so many layers."""

    @property
    def recurrent_layers(self) -> tuple[bool, ...]:
        """Whether each layer is recurrent."""
        return (False,) * self.sites

    @property
    def weight_shapes(self) -> tuple[tuple[int, int], ...]:
        """[N_out, N_in] of each layer's weight; a recurrent layer has its own spikes as further inputs."""
        shapes = zip(self.layer_widths[1:], self.layer_widths, self.recurrent_layers, strict=False)
        return tuple((leaving, entering + leaving * recurrent) for leaving, entering, recurrent in shapes)

    @property
    def sites(self) -> int:
        """The number of layers."""
        return len(self.layer_widths) - 1

    @property
    def entering(self) -> int:
        """The width of the input."""
        return self.layer_widths[0]

    @property
    def fan_in(self) -> int:
        """A current is a sum over all inputs of its layer."""
        return max(entering for _, entering in self.weight_shapes)

    @property
    def fan_out(self) -> int:
        """An input reaches all neurons of the first layer."""
        return self.layer_widths[1]

    @property
    def updates(self) -> int:
        """Neuron updates in one pass."""
        return self.time_steps * self.batch * sum(self.layer_widths[1:])

    @property
    def is_judged_by_layer(self) -> bool:
        """Whether it is deep, or has layers in 16 bits: rounding moves too many hidden spikes to predict an answer."""
        return self.sites > (1 if self.dtype in HALVES else DEEPEST_WHOLE)

    @property
    def input_words(self) -> str:
        """`input rate 0.1`, and the missing gradient of the input."""
        entering = "input rate" if self.input_kind == "spikes" else f"{self.input_kind} input at rate"
        return f"{entering} {self.input_rate:g}" + ("" if self.input_gradient else ", no gradient of the input")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(Stack):
    """A stack of layers that are all as wide as the input.

    The steps come in chunks of `chunk_steps`, the last of which may have fewer, or as a whole if that is 0. The state
    is carried from chunk to chunk, and the gradient goes back through it, unless `carried_gradient` is False.
    """

    SIZES: ClassVar[dict[str, tuple[str, str]]] = {
        "neurons": ("N", "neurons"),
        "batch": ("B", "batch size"),
        "time_steps": ("T", "time steps"),
        "layers": ("L", "layers"),
    }
    HIDDEN_ONES: ClassVar[tuple[str, ...]] = ("layers",)
    LATER: ClassVar[tuple[str, ...]] = ("chunk_steps", "carried_gradient")

    workload: Literal["linear_lif"] = "linear_lif"
    neurons: Count
    layers: Count
    chunk_steps: CountOrNone = 0
    carried_gradient: bool = True

    @property
    def lacks(self) -> str:
        """Why there is no gradient to cut; empty if there is, or if none is cut."""
        is_whole = self.cuts_gradient and not self.chunk_steps
        return "carried_gradient = false cuts the gradient between chunks, and needs chunk_steps" if is_whole else ""

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The width of the input, and of each layer."""
        return (self.neurons,) * (self.layers + 1)

    def cut(self, start: int, count: int) -> Self:
        """The case of so many layers from the one of number `start` on."""
        return self.with_(layers=count)

    def of_exam(self, layers: int) -> Self:
        """The case in the shape of the exam, with so many layers."""
        alike = self.with_(**EXAM_SHAPE, layers=layers)
        return alike.with_(time_steps=EXAM_STEPS, chunk_steps=EXAM_STEPS // 2) if self.chunk_steps else alike

    def growth(self, axis: str) -> int:
        """A product of N neurons has N^2 terms, and all else is proportional."""
        return 2 if axis == "neurons" else 1


@dataclass(frozen=True, slots=True)
class Problem(problem.Stack):
    """The arrays of a case."""

    case: Stack

    def layers(self) -> list[Layer]:
        """Weight [N_out, N_in] and bias [N_out] of each layer, float32; `drive` times the case's.

        A recurrent layer's weight is [N_out, N_in + N_out] (cases/recurrence.py).
        """
        return self._once("layers", 0, self._layers)

    @property
    def enters_as_spikes(self) -> bool:
        """Whether the input is 0 and 1."""
        return self.case.input_kind == "spikes"

    def layer(self, number: int, entering: Array, cotangent: Array) -> "Problem":
        """The problem of one layer by itself: content 0 is its input and the cotangent of its output."""
        kind, wanted = ("spikes", True) if number else (self.case.input_kind, self.case.input_gradient)
        case = self.case.cut(number, 1).with_(input_kind=kind, input_gradient=wanted)
        alone = Problem(case, self.exact, self.drive)
        alone._drawn["layers", 0] = [self.layers()[number]]
        alone.put(0, entering, cotangent)
        return alone

    def first(self, count: int) -> "Problem":
        """The problem of the first layers, with inputs and cotangents of its own."""
        part = Problem(self.case.cut(0, count), self.exact, self.drive)
        part._drawn["layers", 0] = self.layers()[:count]
        return part

    def _layers(self) -> list[Layer]:
        make = _sixteenths if self.exact else _normal
        layers = [make(self.case, number) for number in range(self.case.sites)]
        if self.drive == 1.0:
            return layers
        return [(np.float32(self.drive) * weight, np.float32(self.drive) * bias) for weight, bias in layers]

    def _input(self, which: int) -> Array:
        case, shape = self.case, self.case.input_shape
        if case.input_kind == "gaussian" and case.input_rate >= 1:
            return gaussian(case, "amplitude", which, shape)
        chance = uniform(case, "input", which, shape)
        spikes = np.less(chance, case.input_rate, out=chance)
        return spikes if case.input_kind == "spikes" else spikes * gaussian(case, "amplitude", which, shape)


def exams(case: Stack, drive: float | None = None) -> list[Problem]:
    """The exams of this case's neuron: of one layer and, if the case has more, of two; in two chunks and in three.

    An exam is exact: weights and biases are sixteenths, and no potential can equal the threshold. With a `drive` the
    neuron stays the case's, and all currents are that much larger.
    """
    numbers = range(1, 1 + min(2, case.sites))
    whole = [exam(case, layers) if drive is None else odd(case, layers, drive) for layers in numbers]
    return whole + [
        replace(each, case=each.case.with_(chunk_steps=EXAM_STEPS // 3)) for each in whole if case.chunk_steps
    ]


def exam(case: Stack, layers: int) -> Problem:
    """The exact exam of this case's neuron in a stack of so many layers."""
    return Problem(odd(case, layers).case.with_(beta=EXAM_BETA, threshold=EXAM_THRESHOLD), exact=True)


def odd(case: Stack, layers: int, drive: float = 1.0) -> Problem:
    """The neuron of `case` in the shape of the exam, with axes of different lengths."""
    dtype = case.dtype if case.dtype in ("float32", "float64") else "float32"
    changes = {"input_kind": "spikes", "input_rate": 0.5, "input_gradient": True, "dtype": dtype}
    return Problem(case.of_exam(layers).with_(**changes), drive=drive)


def builder(adapter: ModuleType) -> Callable[[Any, Any, str], Any]:
    """The adapter's `build`, or the linear layers and its `neuron` in turn. Raises Unsupported if it has neither."""
    if hasattr(adapter, "build"):
        build: Callable[[Any, Any, str], Any] = adapter.build
        return build
    if not hasattr(adapter, "neuron"):
        raise Unsupported("this adapter has no function neuron(case, variant) or build(case, weights, variant)")
    return lambda case, weights, variant: neuron_of(adapter, case, variant).stack(weights)


def products(case: Stack, phase: str) -> dict[str, int]:
    """The number of each product in a pass of a phase."""
    count: dict[str, int] = {}
    sizes = zip(pairwise(case.layer_widths), case.recurrent_layers, strict=True)
    for number, ((entering, leaving), is_recurrent) in enumerate(sizes):
        prefix, steps = _prefix(case, entering, leaving), case.time_steps - 1
        there, back = {f"{prefix}current": 1}, {f"{prefix}weight_gradient": 1}
        if number or case.input_gradient:
            back[f"{prefix}input_gradient"] = 1
        if is_recurrent:
            there[f"{_step(leaving)}current"] = back[f"{_step(leaving)}input_gradient"] = steps
            own = f"{_prefix(case, leaving, leaving)}weight_gradient"
            back[own] = back.get(own, 0) + 1
        of_phase = {"inference": [there], "forward": [there], "backward": [back], "train": [there, back]}
        for name, times in ((name, times) for part in of_phase[phase] for name, times in part.items() if times):
            count[name] = count.get(name, 0) + times
    return count


def spared(case: Stack, phase: str, rates: Mapping[str, float]) -> dict[str, float]:
    """Of the products with what enters a layer: the input, or spikes of the layer before; and with a layer's own."""
    zeros = [1 - case.input_rate, *(1 - rates.get(str(number), 1.0) for number in range(case.sites))]
    count: defaultdict[str, float] = defaultdict(float)
    sizes = zip(pairwise(case.layer_widths), case.recurrent_layers, pairwise(zeros), strict=True)
    for (entering, leaving), is_recurrent, (of_entering, of_own) in sizes:
        for name in ("current", "weight_gradient"):
            count[f"{_prefix(case, entering, leaving)}{name}"] += of_entering
        if is_recurrent:
            count[f"{_step(leaving)}current"] += (case.time_steps - 1) * of_own
            count[f"{_prefix(case, leaving, leaving)}weight_gradient"] += of_own
    there = products(case, phase)
    return {name: times for name, times in count.items() if name in there}


def product_flops(case: Stack, name: str) -> int:
    """FLOPs of one product; the three products of a layer have the same number."""
    rows, entering, leaving = next(size for prefix, size in _sizes(case).items() if name.startswith(prefix))
    return 2 * rows * entering * leaving


def _sizes(case: Stack) -> dict[str, tuple[int, int, int]]:
    """The (rows, N_in, N_out) of each kind of product, by what stands before its name."""
    recurrent = [width for width, is_recurrent in _marked(case) if is_recurrent]
    steps = {_step(width): (case.batch, width, width) for width in recurrent}
    pairs = [*pairwise(case.layer_widths), *((width, width) for width in recurrent)]
    return steps | {_prefix(case, *pair): (case.time_steps * case.batch, *pair) for pair in pairs}


def _marked(case: Stack) -> list[tuple[int, bool]]:
    """The width of each layer, and whether it is recurrent."""
    return list(zip(case.layer_widths[1:], case.recurrent_layers, strict=True))


def _step(neurons: int) -> str:
    """What stands before the name of a product of one time step of a recurrent layer."""
    return f"{neurons}R."


def _prefix(case: Stack, entering: int, leaving: int) -> str:
    """What stands before the name of a product: nothing if all layers are alike, else the shape of the weight."""
    return "" if len(set(case.layer_widths)) == 1 else f"{entering}x{leaving}."


def least_values(case: Stack, phase: str) -> int:
    """Numbers that a pass of a phase must at least read and write."""
    rows = case.time_steps * case.batch
    weights = [entering * leaving for leaving, entering in case.weight_shapes]
    trains, parameters = rows * (case.entering + case.neurons), sum(weights) + sum(case.layer_widths[1:])
    gradients = parameters + rows * case.entering * case.input_gradient
    match phase:
        case "inference" | "forward":
            return trains + parameters
        case "backward":
            first = case.layer_widths[0] * case.layer_widths[1]  # whose weight is read for the input's gradient only
            return trains + sum(weights) - first * (not case.input_gradient) + gradients
        case "train":
            return trains + rows * case.neurons + parameters + gradients
    raise ValueError(f"{phase!r} is no phase")


def static_values(case: Stack) -> int:
    """Numbers in the weights and the input, which exist before a pass."""
    weights = sum(entering * leaving for leaving, entering in case.weight_shapes)
    return weights + case.time_steps * case.batch * case.entering


def product_rows(case: Stack, prefix: str) -> int:
    """The rows of products whose names begin so: those of all steps, or of one step of a recurrent layer."""
    rows, *_ = _sizes(case)[prefix]
    return rows


def is_of_step(case: Stack, name: str) -> bool:
    """Whether a product is that of one time step of a recurrent layer."""
    return name.startswith(tuple(_step(width) for width, own in _marked(case) if own))


def operands(case: Stack, rows: int) -> dict[str, tuple[Array, Array, Array]]:
    """So many `rows` of the input, the cotangent and the weight of each kind of product, as random as the case's.

    Devices draw less power for zeros. Drawing a whole operand may take longer than multiplying it.
    """
    random, found = generator(case, "operands", 0), dict[str, tuple[Array, Array, Array]]()
    for prefix, (_, entering, leaving) in _sizes(case).items():
        x = (random.random((rows, entering), np.float32) < case.input_rate).astype(np.float32)
        cotangent = random.standard_normal((rows, leaving), np.float32)
        weight = cotangent if entering == leaving else random.standard_normal((rows, entering), np.float32)
        if case.input_kind == "gaussian":
            x *= random.standard_normal((rows, entering), np.float32)
        found[prefix] = x, cotangent, weight
    return found


def _normal(case: Stack, number: int) -> Layer:
    entering, leaving = case.layer_widths[number : number + 2]
    both = gaussian(case, "weight", number, (leaving * (entering + 1),))
    weight, bias = both[:-leaving].reshape(leaving, entering), np.float32(BIAS_SCALE) * both[-leaving:]
    weight *= np.float32(WEIGHT_SCALE / (case.input_rate * entering) ** 0.5)
    if case.recurrent_layers[number]:
        own = gaussian(case, "recurrent", number, (leaving, leaving))
        own *= np.float32(RECURRENT_SCALE / (RECURRENT_RATE * leaving) ** 0.5)
        weight = np.concatenate([weight, own], axis=1)
    return weight, bias


def _sixteenths(case: Stack, number: int) -> Layer:
    """A layer with six terms of at most a half in each row, so that |x| <= 3.5 and |u| <= 7 for any input.

    In a recurrent layer three of them are the layer's own spikes. A later layer gets fewer spikes. More bias keeps it
    firing, because a silent layer could hide a wrong one.
    """
    random, (entering, leaving) = generator(case, "exam", number), case.layer_widths[number : number + 2]
    weight = np.zeros(case.weight_shapes[number], dtype=np.float32)
    for row in weight:
        if case.recurrent_layers[number]:
            others = random.choice(entering, size=3, replace=False)
            chosen = np.concatenate([others, entering + random.choice(leaving, size=3, replace=False)])
        else:
            chosen = random.choice(entering, size=6, replace=False)
        row[chosen] = random.integers(-5, 9, size=6) / 16
    bias = ((random.integers(-2, 5, size=leaving) + (4 if number else 0)) / 16).astype(np.float32)
    return weight, bias
