"""The workload `network`: convolutional networks with a library's neuron at every site of neurons.

The harness builds the network from the framework's own modules, the same for all libraries, and runs it layer by layer:
each operation over all time steps, with time and batch as one axis of images. The input is spikes
[T, B, channels, side, side], and the output is one number for each class and step, [T, B, classes]. `normalisation`
"batch" takes the statistics of the batch in every phase, and keeps no running averages, so that equal passes have equal
answers. "frozen" takes the statistics that the initialisation counts with. The gradient of images is not computed.

The floor has the convolutions, each kind measured by itself in the timed framework, and bytes: parameters P, input,
output O = T * B * classes, and a `size` of bytes each. All else costs nothing.

    phase               convolutions                        reads at the least     writes at the least
    inference, forward  values                              input, P               O
    backward            gradients of kernels and values     input, P, cotangent O  gradients P
    train               values, gradients                   input, P, cotangent O  O, gradients P
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.refusal import Unsupported
from snnbench.cases import case, problem
from snnbench.cases.case import Count, Rate
from snnbench.cases.density import densities
from snnbench.cases.operations import INPUT, Operation
from snnbench.cases.problem import EXAM_BETA, EXAM_SHAPE, EXAM_THRESHOLD, Array, uniform
from snnbench.cases.windows import Convolution
from snnbench.workloads import initialisation, lif, models

NAME = "network"
PARAMETERS: tuple[str, ...] = ("weight", "bias")
"""The parameters of convolutions, normalisations and the classifier, each with a gradient."""
ModelName = Literal[
    "spiking-resnet18", "spiking-resnet34", "spiking-resnet50", "sew-resnet18", "spikformer", "vgg", "convolutional"
]
ImageKind = Literal["mnist", "cifar10", "n-mnist", "dvs128-gesture"]
Statistics = Literal["batch", "frozen"]
IMAGES: dict[ImageKind, tuple[int, int, int]] = {
    "mnist": (1, 28, 10),
    "cifar10": (3, 32, 10),
    "n-mnist": (2, 34, 10),
    "dvs128-gesture": (2, 128, 11),
}
"""Channels, rows and columns, and classes of the images of a data set."""
EXAM_WIDTH = 4
"""Channels of the first stage in the exam, in which all operations and sites of the model take part."""
EXAM_SEED = 1
"""With this seed, whatever the case's, every site of every model with a reset fires in 4 % to 89 % of steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(case.GraphCase):
    """A network on images of spikes, with `input_rate` spikes per step."""

    SIZES: ClassVar[dict[str, tuple[str, str]]] = {
        "batch": ("B", "batch size"),
        "time_steps": ("T", "time steps"),
        "width": ("W", "channels of the first stage"),
    }
    SAMPLES: ClassVar[str] = "images"
    IN_KIND: ClassVar[tuple[str, ...]] = ("model", "image", "normalisation")

    workload: Literal["network"] = "network"
    width: Count
    model: ModelName
    image: ImageKind
    normalisation: Statistics
    input_rate: Rate

    @property
    def kind(self) -> str:
        """The model, the image and the profile."""
        statistics = "" if self.normalisation == "batch" else ", frozen statistics"
        return f"{self.model} on {self.image}{statistics} {self.profile}"

    @property
    def neurons(self) -> int:
        """The neurons of all sites."""
        return parts(self).neurons

    @property
    def shape(self) -> tuple[int, int, int]:
        """[T, B, classes], the shape of the output."""
        return self.time_steps, self.batch, IMAGES[self.image][2]

    @property
    def summed(self) -> int:
        """The terms of all steps, samples and places: the first convolution has the most places."""
        return self.time_steps * self.batch * prod(parts(self).operations[0].shape[1:])

    @property
    def input_words(self) -> str:
        """The rate of the input."""
        return f"input rate {self.input_rate:g}"


def parts(case: Case, exact: bool = False) -> models.Model:
    """The model of a case."""
    channels, side, classes = IMAGES[case.image]
    frozen = exact or case.normalisation == "frozen"
    return models.model(case.model, (channels, side), case.width, classes, case.input_rate, frozen, exact)


@dataclass(frozen=True, slots=True)
class Problem(problem.Graph):
    """The arrays of a case."""

    case: Case

    def operations(self) -> Sequence[Operation]:
        """The operations in order."""
        return parts(self.case, self.exact).operations

    def parameters(self) -> dict[str, list[Array]]:
        """The parameters of each operation that has some, float32."""
        draw = initialisation.sixteenths if self.exact else initialisation.normal
        return self._once("parameters", 0, lambda: draw(self.case, parts(self.case, self.exact)))

    def site(self, operation: Operation, current: NDArray[Any], cotangent: NDArray[Any]) -> lif.Problem:
        """The problem of a site's neurons by themselves, which is one of the workload `lif`."""
        return lif.at_site(self.case, operation, current, cotangent)

    def _input(self, which: int) -> Array:
        channels, side, _ = IMAGES[self.case.image]
        shape = (self.case.time_steps, self.case.batch, channels, side, side)
        chance = uniform(self.case, "input", which, shape)
        return np.less(chance, self.case.input_rate, out=chance)


def exams(case: Case, drive: float | None = None) -> list[Problem]:
    """The exact exam of the whole model, with few channels and frozen statistics. Raises Unsupported.

    Kernels and biases are sixteenths, so that every current is, and no potential can equal the threshold.
    """
    if drive is not None:
        raise Unsupported("a neuron of another rule is not run in networks")
    sizes = {"time_steps": EXAM_SHAPE["time_steps"], "batch": EXAM_SHAPE["batch"], "width": EXAM_WIDTH}
    dtype = case.dtype if case.dtype in ("float32", "float64") else "float32"
    changes = {"normalisation": "frozen", "input_rate": 0.3, "dtype": dtype, "seed": EXAM_SEED}
    return [Problem(case.with_(**sizes, **changes, beta=EXAM_BETA, threshold=EXAM_THRESHOLD), exact=True)]


def builder(adapter: ModuleType) -> Callable[[Any, Any, str], Any]:
    """A function that makes the network with the adapter's `neuron` at every site.

    It raises Unsupported if the adapter has none for its framework.
    """

    def build(case: Any, operations: Any, variant: str) -> Any:
        if not hasattr(adapter, "neuron"):  # a check of the variant comes first, and may have a better reason
            raise Unsupported("this adapter has no function neuron(case, variant) for the sites of a network")
        neuron = adapter.neuron(case, variant)
        if not hasattr(neuron, "network"):
            raise Unsupported("networks are built in PyTorch and in JAX only")
        return neuron.network(operations)

    return build


def products(case: Case, phase: str) -> dict[str, int]:
    """The number of convolutions of each kind in a pass of a phase."""
    counts: Counter[str] = Counter()
    for operation in parts(case).operations:
        if not isinstance(operation, Convolution):
            continue
        if phase != "backward":
            counts[f"{_kind(case, operation)}.value"] += 1
        if phase in ("backward", "train"):
            counts[f"{_kind(case, operation)}.kernel-gradient"] += 1
            counts[f"{_kind(case, operation)}.image-gradient"] += operation.of != (INPUT,)
    return {name: count for name, count in counts.items() if count}


def spared(case: Case, phase: str, rates: Mapping[str, float]) -> dict[str, float]:
    """Of the convolutions that take the input, or spikes."""
    operations = parts(case).operations
    shares, count = densities(operations, case.input_rate, rates), defaultdict[str, float](float)
    for operation in operations:
        if isinstance(operation, Convolution):
            for name in ("value", "kernel-gradient"):
                count[f"{_kind(case, operation)}.{name}"] += 1 - shares[operation.of[0]]
    there = products(case, phase)
    return {name: times for name, times in count.items() if name in there}


def product_flops(case: Case, name: str) -> int:
    """FLOPs of a convolution by its definition; an algorithm may need fewer."""
    operation, _ = convolutions(case)[name.partition(".")[0]]
    return 2 * case.time_steps * case.batch * prod(operation.shape) * operation.terms


def convolutions(case: Case) -> dict[str, tuple[Convolution, tuple[int, ...]]]:
    """A convolution of each kind, with the shape of the image that enters."""
    return {
        _kind(case, operation): (operation, _entering(case, operation))
        for operation in parts(case).operations
        if isinstance(operation, Convolution)
    }


def least_values(case: Case, phase: str) -> int:
    """Numbers that a pass of a phase must at least read and write."""
    output = prod(case.shape)
    more = {"inference": output, "forward": output, "backward": output, "train": 2 * output}[phase]
    gradients = _parameter_values(case) if phase in ("backward", "train") else 0
    return static_values(case) + gradients + more


def static_values(case: Case) -> int:
    """Numbers in the parameters and the input, which exist before a pass."""
    channels, side, _ = IMAGES[case.image]
    return _parameter_values(case) + case.time_steps * case.batch * channels * side**2


def operands(case: Case, rows: int) -> dict[str, tuple[Array, Array, Array]]:
    """The operands of an empty product."""
    number = np.ones((1, 1), np.float32)
    return {"": (number, number, number)}


def _entering(case: Case, operation: Operation) -> tuple[int, ...]:
    """The shape of the image that enters an operation."""
    channels, side, _ = IMAGES[case.image]
    shapes = {each.name: each.shape for each in parts(case).operations} | {INPUT: (channels, side, side)}
    return shapes[operation.of[0]]


def _kind(case: Case, operation: Convolution) -> str:
    """`3x3-2_64x8x8_to_128`: kernel and stride, the image that enters, and the channels. Models have equal strides."""
    kernel, image = ("x".join(map(str, sizes)) for sizes in (operation.size, _entering(case, operation)))
    return f"{kernel}-{operation.stride[0]}_{image}_to_{operation.shape[0]}"


def _parameter_values(case: Case) -> int:
    operations = parts(case).operations
    return sum(prod(shape) for operation in operations for shape in operation.parameters.values())
