"""The workload `loading`: an epoch over event data, with a network's forward and backward pass and no optimiser.

It is the experiment of "Training spiking neural networks, fast" (Lenz 2022). Samples of spoken words are events of 700
channels. Tonic reads them, sums the events of neighbouring channels and of a time window to frames of KEPT_CHANNELS
numbers, and caches them as the `strategy` says. PyTorch's DataLoader makes batches in `workers` processes, or in the
loop's own process. The network is that of perceptron.py. The loss is the cross entropy of the outputs' sum over time.

    strategy        each sample of an epoch comes from
    naive           the dataset's file, read and transformed anew
    disk-cold       the same, and is written to a cache on the disk that is empty at first
    disk-warm       a cache on the disk, filled before the epoch
    memory          a cache in memory, filled before the epoch
    device-sparse   a sparse tensor on the device, placed there before the epoch, and made dense in the loop

A timed pass is an epoch of `samples // batch` batches, in an order that the seed draws. Three phases are timed:

    epoch      the whole loop
    compute    the same loop on batches that are on the device already
    loader     the loader alone: each batch is loaded and placed on the device

The floor of `epoch` and `compute` counts the products between hidden layers, and bytes: of each batch its frames
T * B * KEPT_CHANNELS, its outputs T * B * classes, the parameters and their gradients. The floor of `loader` counts the
frames, which are written once. All else costs nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.refusal import Unsupported
from snnbench.cases import case, problem
from snnbench.cases.case import Count, CountOrNone
from snnbench.cases.operations import Operation
from snnbench.cases.problem import EXAM_SHAPE, EXAM_THRESHOLD, Array, generator
from snnbench.datasets import frames
from snnbench.datasets.frames import KEPT_CHANNELS
from snnbench.datasets.source import DataName, Source
from snnbench.workloads import lif, perceptron

NAME = "loading"
PARAMETERS: tuple[str, ...] = ("weight", "bias")
PACKAGES: tuple[str, ...] = ("tonic==1.7.0", "h5py==3.16.0", "requests==2.34.2")
"""Packages that a worker needs beside those of its adapter; Tonic imports `requests` and does not declare it."""
OVERRIDES: tuple[str, ...] = ("librosa ; python_version < '3'",)
"""Packages that are kept out: Tonic's transforms of sound need librosa, and no other part does."""
Strategy = Literal["naive", "disk-cold", "disk-warm", "memory", "device-sparse"]
EXAM_RATE = 0.3
EXAM_SIZES = {"time_steps": EXAM_SHAPE["time_steps"], "batch": EXAM_SHAPE["batch"], "width": EXAM_SHAPE["neurons"]}
EXAM_BETA = 0.5
EXAM_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(case.GraphCase):
    """An epoch over the first `samples` of a dataset; `layers` hidden layers of `width` neurons."""

    SIZES: ClassVar[dict[str, tuple[str, str]]] = {
        "batch": ("B", "batch size"),
        "time_steps": ("T", "time steps"),
        "width": ("W", "neurons of a hidden layer"),
        "layers": ("L", "hidden layers"),
        "samples": ("S", "samples of an epoch"),
        "workers": ("P", "processes of the loader"),
    }
    SAMPLES: ClassVar[str] = "samples"
    IN_KIND: ClassVar[tuple[str, ...]] = ("data", "strategy")
    PHASES: ClassVar[tuple[str, ...]] = ("epoch", "compute", "loader")
    PREFIX: ClassVar[str] = "loading "

    workload: Literal["loading"] = "loading"
    width: Count
    layers: Count
    data: DataName
    samples: Count
    strategy: Strategy
    workers: CountOrNone

    @property
    def kind(self) -> str:
        """The data, the strategy and the profile."""
        return f"{self.PREFIX}{self.data}, {self.strategy}, {self.profile}"

    @property
    def source(self) -> Source:
        """The data."""
        return Source(self.data, self.samples)

    @property
    def neurons(self) -> int:
        """The neurons of all sites."""
        return self.width * self.layers

    @property
    def classes(self) -> int:
        """The number of words."""
        return self.source.dataset.classes

    @property
    def batches(self) -> int:
        """The batches of an epoch; samples that fill no batch are left out."""
        return self.samples // self.batch

    @property
    def lacks(self) -> str:
        """An epoch needs a batch."""
        return "" if self.batches else f"samples = {self.samples} do not fill a batch of {self.batch}"

    @property
    def shape(self) -> tuple[int, int, int]:
        """[T, B, classes], the shape of the output for a batch."""
        return self.time_steps, self.batch, self.classes

    @property
    def loaders(self) -> int:
        """The loader's processes."""
        return self.workers

    @property
    def samples_in_pass(self) -> int:
        """The samples of an epoch."""
        return self.batches * self.batch

    @property
    def is_fed(self) -> bool:
        """True."""
        return True

    @property
    def steps(self) -> tuple[str, float] | None:
        """The optimiser and its learning rate; None, so gradients add up over the epoch."""
        return None


@dataclass(frozen=True, slots=True)
class Problem(problem.Graph):
    """The arrays of a case for a single batch. Drawn frames imitate those of the data; a batch of data can be `put`."""

    case: Case

    def operations(self) -> tuple[Operation, ...]:
        """The operations in order."""
        return perceptron.operations(KEPT_CHANNELS, self.case.width, self.case.layers, self.case.classes)

    def parameters(self) -> dict[str, list[Array]]:
        """Weight and bias of each linear layer, float32."""
        return self._once("parameters", 0, self._parameters)

    def site(self, operation: Operation, current: NDArray[Any], cotangent: NDArray[Any]) -> lif.Problem:
        """The problem of a site's neurons by themselves, which is one of the workload `lif`."""
        return lif.at_site(self.case, operation, current, cotangent)

    def _parameters(self) -> dict[str, list[Array]]:
        if self.exact:
            return perceptron.sixteenths(self.case, self.operations())
        square = frames.mean_square(self.case.time_steps)
        return perceptron.normal(self.case, self.operations(), square)

    def _input(self, which: int) -> Array:
        random, shape = generator(self.case, "input", which), (self.case.time_steps, self.case.batch, KEPT_CHANNELS)
        if self.exact:
            return (random.random(shape, dtype=np.float32) < EXAM_RATE).astype(np.float32)
        return random.poisson(frames.mean(self.case.time_steps), shape).astype(np.float32)


def exams(case: Case, drive: float | None = None) -> list[Problem]:
    """The exact exam of the whole network, for spikes in place of frames. Raises Unsupported.

    A neuron without decay keeps its decay of 1: its potentials are multiples of 2^-13 below 2^6.
    """
    if drive is not None:
        raise Unsupported("a neuron of another rule is not run in networks")
    dtype = case.dtype if case.dtype in ("float32", "float64") else "float32"
    beta = 1.0 if case.beta == 1.0 else EXAM_BETA
    changes: dict[str, Any] = {"dtype": dtype, "seed": EXAM_SEED, "beta": beta, "threshold": EXAM_THRESHOLD}
    return [Problem(case.with_(**EXAM_SIZES, **changes), exact=True)]


def builder(adapter: ModuleType) -> Callable[[Any, Any, str], Any]:
    """A function that makes the network with the adapter's `neuron` at every site. It raises Unsupported."""

    def build(case: Any, operations: Any, variant: str) -> Any:
        if not hasattr(adapter, "neuron"):  # a check of the variant comes first, and may have a better reason
            raise Unsupported("this adapter has no function neuron(case, variant) for the sites of a network")
        neuron = adapter.neuron(case, variant)
        if not getattr(neuron, "is_fed", False):
            raise Unsupported("PyTorch's DataLoader feeds a loop of PyTorch only")
        return neuron.network(operations)

    return build


def prepare(case: Case, each: Callable[[int, int], None]) -> None:
    """Make generated data that are missing; `each` gets the progress. Raises DatasetError."""
    frames.window_us(case.time_steps)
    case.source.make(each)


def products(case: Case, phase: str) -> dict[str, int]:
    """The number of each product between hidden layers in a pass of a phase; `train` is a pass of one batch."""
    if phase == "loader" or case.layers < 2:
        return {}
    count = (case.layers - 1) * (case.batches if phase in case.PHASES else 1)
    if phase in ("inference", "forward"):
        return {"current": count}
    return {"current": count, "weight_gradient": count, "input_gradient": count}


def product_flops(case: Case, name: str) -> int:
    """FLOPs of one product; all three have the same number."""
    return 2 * case.time_steps * case.batch * case.width**2


def least_values(case: Case, phase: str) -> int:
    """Numbers that a pass of a phase must at least read and write."""
    loaded = case.time_steps * case.batch * KEPT_CHANNELS
    if phase == "loader":
        return case.batches * loaded
    outputs = case.time_steps * case.batch * case.classes
    of_batch = loaded + outputs + 2 * _parameter_values(case)
    return of_batch * (case.batches if phase in case.PHASES else 1)


def static_values(case: Case) -> int:
    """Numbers in the parameters and a batch of frames, which exist before a pass of one batch."""
    return _parameter_values(case) + case.time_steps * case.batch * KEPT_CHANNELS


def operands(case: Case, rows: int) -> dict[str, tuple[Array, Array, Array]]:
    """So many `rows` of the input, the cotangent and the weight of a product between hidden layers."""
    random = generator(case, "operands", 0)
    pattern = (rows, case.width)
    spikes = (random.random(pattern, np.float32) < perceptron.RATE).astype(np.float32)
    numbers = random.standard_normal(pattern, np.float32)
    return {"": (spikes, numbers, numbers)}


def _parameter_values(case: Case) -> int:
    parts = perceptron.operations(KEPT_CHANNELS, case.width, case.layers, case.classes)
    return sum(int(np.prod(shape)) for part in parts for shape in part.parameters.values())
