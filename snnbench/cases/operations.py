"""Operations: the parts of a network that is more than a stack, with their definition in NumPy, float64.

A network is a sequence of operations. Each takes values of operations before it, or the network's INPUT. The first axis
of a value counts *images*: the time steps times the samples of the batch, time first. The second axis is channels.

Every operation but Neurons can be computed in part. For some channels it takes the parameters of these channels, and if
it is `channelwise` their entering values. For some images it takes their entering values and cotangents, unless it
`mixes_images`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
INPUT = "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(ABC):
    """An operation: `of` names the values that it takes, and `shape` [channels, ...] is that of its value."""

    channelwise: ClassVar[bool] = True

    name: str
    of: tuple[str, ...]
    shape: tuple[int, ...]

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter, whose first axis is that of the value's channels."""
        return {}

    @property
    def terms(self) -> int:
        """The number of terms in an entry of the value."""
        return 1

    @property
    def mixes_images(self) -> bool:
        """Whether an image's value depends on other images."""
        return False

    @abstractmethod
    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The value."""

    @abstractmethod
    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """dL/d(entering), for dL/d(value) = `cotangent`."""

    def cancellation(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> float:
        """How many times as large as dL/d(entering) its terms are: 1, unless they cancel."""
        return 1.0

    def gradients(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """dL/d(parameter) of each parameter."""
        return []

    def gradient_sizes(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[float]:
        """The size of each gradient's sums: its norm, unless terms cancel."""
        return [float(np.linalg.norm(each)) for each in self.gradients(entering, parameters, cotangent)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution(Operation):
    """A convolution in two dimensions with a square kernel, zeros around the image, and no bias."""

    channelwise: ClassVar[bool] = False

    inputs: int
    size: int
    stride: int = 1
    padding: int = 0

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """The kernel [channels, inputs, size, size]."""
        return {"weight": (self.shape[0], self.inputs, self.size, self.size)}

    @property
    def terms(self) -> int:
        """A term for each entry of a channel's kernel."""
        return self.inputs * self.size**2

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """Sums over shifted images."""
        (kernel,) = parameters
        total: Array | float = 0.0
        for row, column, image in self._shifted(entering[0]):
            total = total + np.tensordot(image, kernel[:, :, row, column], (1, 1))
        return np.moveaxis(np.asarray(total), -1, 1)

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """The kernel's entries times the cotangent, at the places that they read."""
        (kernel,), padding = parameters, self.padding
        padded = np.zeros(_padded(entering[0], padding, 0.0).shape)
        for row, column, image in _shifted(padded, self.size, self.stride):
            image += np.moveaxis(np.tensordot(cotangent, kernel[:, :, row, column], (1, 0)), -1, 1)
        height, width = entering[0].shape[2:]
        return [padded[:, :, padding : padding + height, padding : padding + width]]

    def gradients(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Sums over images and places."""
        gradient = np.empty((cotangent.shape[1], *entering[0].shape[1:2], self.size, self.size))
        for row, column, image in self._shifted(entering[0]):
            gradient[:, :, row, column] = np.tensordot(cotangent, image, ((0, 2, 3), (0, 2, 3)))
        return [gradient]

    def gradient_sizes(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[float]:
        """The largest norm of the sum over the first images, of any number.

        A normalisation of the batch after the convolution makes the images cancel, so sums of fewer of them are larger.
        """
        largest = 0.0
        total: Array | float = 0.0
        for image in range(len(cotangent)):
            (gradient,) = self.gradients([entering[0][image : image + 1]], parameters, cotangent[image : image + 1])
            total = total + gradient
            largest = max(largest, float(np.linalg.norm(total)))
        return [largest]

    def _shifted(self, image: Array) -> Iterator[tuple[int, int, Array]]:
        return _shifted(_padded(image, self.padding, 0.0), self.size, self.stride)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation(Operation):
    """Batch normalisation: each channel less its mean, over its standard deviation, times a weight, plus a bias.

    Mean and variance are those of all images and places. If a `variance` is given, it is used in their place, and the
    mean is 0: the statistics are frozen.
    """

    variance: float | None = None
    epsilon: float = 1e-5

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """A weight and a bias for each channel."""
        return {"weight": self.shape[:1], "bias": self.shape[:1]}

    @property
    def mixes_images(self) -> bool:
        """Unless statistics are frozen."""
        return self.variance is None

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The normalised value."""
        weight, bias = parameters
        normal, _ = self._normal(entering[0])
        return _broadcast(weight) * normal + _broadcast(bias)

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """The cotangent, through the statistics, too, unless they are frozen."""
        normal, deviation = self._normal(entering[0])
        scaled = _broadcast(parameters[0]) / deviation * cotangent
        if self.variance is not None:
            return [scaled]
        mean, along = (np.mean(array, (0, 2, 3), keepdims=True) for array in (scaled, scaled * normal))
        return [scaled - mean - normal * along]

    def cancellation(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> float:
        """The statistics of the batch take the mean off the cotangent, and its part along the value."""
        if self.variance is not None:
            return 1.0
        _, deviation = self._normal(entering[0])
        terms = float(np.linalg.norm(_broadcast(parameters[0]) / deviation * cotangent))
        norm = float(np.linalg.norm(self.backward(entering, parameters, cotangent)[0]))
        return max(1.0, terms / norm) if norm else 1.0

    def gradients(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Sums over images and places."""
        normal, _ = self._normal(entering[0])
        return [(cotangent * normal).sum((0, 2, 3)), cotangent.sum((0, 2, 3))]

    def _normal(self, entering: Array) -> tuple[Array, Any]:
        if self.variance is not None:
            deviation: Any = np.sqrt(self.variance + self.epsilon)
            return entering / deviation, deviation
        centred = entering - entering.mean((0, 2, 3), keepdims=True)
        deviation = np.sqrt((centred**2).mean((0, 2, 3), keepdims=True) + self.epsilon)
        return centred / deviation, deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class Neurons(Operation):
    """A layer of spiking neurons: a current for each place of each channel. reference.py defines its values."""

    @property
    def count(self) -> int:
        """The number of neurons."""
        return int(np.prod(self.shape))

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """Raises TypeError: a neuron's spikes depend on the images of the steps before."""
        raise TypeError("neurons have no value by image")

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Raises TypeError, as `value` does."""
        raise TypeError("neurons have no gradient by image")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaximumPool(Operation):
    """The maximum of square windows. The gradient goes to the first of equal maxima, by rows."""

    size: int
    stride: int
    padding: int = 0

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The maxima."""
        maxima: Array = self._windows(entering[0]).max(0)
        return maxima

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """The cotangent, at the places of the maxima."""
        chosen, padding = self._windows(entering[0]).argmax(0), self.padding
        padded = np.zeros(_padded(entering[0], padding, 0.0).shape)
        for number, (_, _, image) in enumerate(_shifted(padded, self.size, self.stride)):
            image += np.where(chosen == number, cotangent, 0.0)
        height, width = entering[0].shape[2:]
        return [padded[:, :, padding : padding + height, padding : padding + width]]

    def _windows(self, image: Array) -> Array:
        padded = _padded(image, self.padding, -np.inf)
        return np.stack([shifted for _, _, shifted in _shifted(padded, self.size, self.stride)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Average(Operation):
    """The mean over all places of each channel."""

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The means."""
        means: Array = entering[0].mean((2, 3))
        return means

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """An equal share for each place."""
        height, width = entering[0].shape[2:]
        return [np.broadcast_to(cotangent[:, :, None, None] / (height * width), entering[0].shape)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(Operation):
    """The sum of two values."""

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The sum."""
        return entering[0] + entering[1]

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """The cotangent, twice."""
        return [cotangent, cotangent]


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(Operation):
    """A linear layer with a bias."""

    channelwise: ClassVar[bool] = False

    inputs: int

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Weight [channels, inputs] and bias [channels]."""
        return {"weight": (self.shape[0], self.inputs), "bias": self.shape}

    @property
    def terms(self) -> int:
        """A term for each input."""
        return self.inputs

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The products, and the bias."""
        weight, bias = parameters
        products: Array = entering[0] @ weight.T + bias
        return products

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Through the weight."""
        return [cotangent @ parameters[0]]

    def gradients(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Sums over images."""
        return [cotangent.T @ entering[0], cotangent.sum(0)]


def _broadcast(by_channel: Array) -> Array:
    return by_channel[:, None, None]


def _padded(image: Array, padding: int, value: float) -> Array:
    return np.pad(image, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=value)


def _shifted(padded: Array, size: int, stride: int) -> Iterator[tuple[int, int, Array]]:
    """For each row and column of a window: the view of that entry in all windows."""
    height, width = (length - size + 1 for length in padded.shape[2:])
    for row in range(size):
        for column in range(size):
            yield row, column, padded[:, :, row : row + height : stride, column : column + width : stride]
