"""Operations: the parts of a network that is more than a stack, with their definition in NumPy, float64.

A network is a sequence of operations; those on windows of images are in windows.py. Each takes values of operations
before it, or the network's INPUT. The first axis of a value counts *images*: the time steps times the samples of the
batch, time first. The second axis is channels.

Every operation but Neurons can be computed in part. For some channels it takes the parameters of these channels, and if
it is `channelwise` their entering values. For some images it takes their entering values and cotangents, unless it
`mixes_images`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
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

    def value_of(self, channels: Any, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The value's channels of these numbers, from what computing them in part takes."""
        return self.value(entering, parameters)

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
    """A layer of spiking neurons: a current for each place of each channel. reference.py defines its values.

    The decay `beta` is the case's if it is None, and one for each neuron if it is an array [N]. `alpha` is that of a
    synaptic current. With `recurrent` weights [N, N] the neurons get their own spikes of the step before, too.
    """

    beta: float | Array | None = None
    alpha: float = 0.0
    recurrent: bool = False

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """The weights of the neurons' own spikes, if they are recurrent."""
        return {"recurrent": (self.count, self.count)} if self.recurrent else {}

    @property
    def count(self) -> int:
        """The number of neurons."""
        return prod(self.shape)

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """Raises TypeError: a neuron's spikes depend on the images of the steps before."""
        raise TypeError("neurons have no value by image")

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Raises TypeError, as `value` does."""
        raise TypeError("neurons have no gradient by image")


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrator(Operation):
    """Leaky integrators without spikes: i[t] = alpha i[t-1] + x[t], v[t] = beta v[t-1] + i[t], and v is the value."""

    time_steps: int = 1
    beta: float = 1.0
    alpha: float = 0.0

    @property
    def terms(self) -> int:
        """The steps before."""
        return self.time_steps

    @property
    def mixes_images(self) -> bool:
        """True: a value depends on the steps before."""
        return True

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The potentials, step by step."""
        return self._run(entering[0], 1)

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """The same recurrences, from the last step to the first."""
        return [self._run(cotangent, -1)]

    def _run(self, images: Array, direction: int) -> Array:
        by_step = images.reshape(self.time_steps, -1, *images.shape[1:])[::direction]
        total: Array | float = 0.0
        current: Array | float = 0.0
        steps = list[Array | float]()
        for x in by_step:
            current = self.alpha * current + x
            total = self.beta * total + current
            steps.append(total)
        return np.stack(steps[::direction]).reshape(images.shape)


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
class Flatten(Operation):
    """The numbers of each image in another shape, by rows. So its channels are not those of the entering value."""

    channelwise: ClassVar[bool] = False

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The numbers in the new shape."""
        return entering[0].reshape(-1, *self.shape)

    def value_of(self, channels: Any, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The channels of the whole value, because no parameter selects them."""
        part: Array = self.value(entering, parameters)[:, channels]
        return part

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """The cotangent in the old shape."""
        return [cotangent.reshape(entering[0].shape)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(Operation):
    """Spiking self-attention without a softmax: (Q K^T) V times a `scale`, over the places of each image.

    The entering values are queries, keys and values. Channels are divided among `heads`.
    """

    channelwise: ClassVar[bool] = False

    heads: int
    scale: float

    @property
    def terms(self) -> int:
        """A term for each place and channel of a head."""
        return prod(self.shape) // self.heads

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The products."""
        queries, keys, values = map(self._by_head, entering)
        weights = np.einsum("ihdp,ihdr->ihpr", queries, keys)
        return self._whole(np.einsum("ihpr,ihdr->ihdp", weights, values))

    def value_of(self, channels: Any, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The channels of the whole value: a place attends by all channels of its head."""
        part: Array = self.value(entering, parameters)[:, channels]
        return part

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Through each of the three."""
        queries, keys, values = map(self._by_head, entering)
        arriving, weights = self._by_head(cotangent), np.einsum("ihdp,ihdr->ihpr", queries, keys)
        of_weights = np.einsum("ihdp,ihdr->ihpr", arriving, values)
        return [
            self._whole(np.einsum("ihpr,ihdr->ihdp", of_weights, keys)),
            self._whole(np.einsum("ihpr,ihdp->ihdr", of_weights, queries)),
            self._whole(np.einsum("ihpr,ihdp->ihdr", weights, arriving)),
        ]

    def _by_head(self, images: Array) -> Array:
        return images.reshape(len(images), self.heads, self.shape[0] // self.heads, -1)

    def _whole(self, by_head: Array) -> Array:
        return self.scale * by_head.reshape(-1, *self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling(Operation):
    """Each number of an image times a weight of its own, plus a bias of its own if it is `biased`."""

    biased: bool = False

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """A weight and a bias for each number of the value."""
        weight = {"weight": self.shape}
        return weight | {"bias": self.shape} if self.biased else weight

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The products, and the bias."""
        products = entering[0] * parameters[0]
        return products + parameters[1] if self.biased else products

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Through the weight."""
        return [cotangent * parameters[0]]

    def gradients(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Sums over images."""
        of_weight = (cotangent * entering[0]).sum(0)
        return [of_weight, cotangent.sum(0)] if self.biased else [of_weight]

    def gradient_sizes(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[float]:
        """The size of the terms: sums over images cancel."""
        return _of_terms(self.gradients([entering[0] ** 2], parameters, cotangent**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear(Operation):
    """A linear layer for values without places, with a bias if it is `biased`."""

    channelwise: ClassVar[bool] = False

    inputs: int
    biased: bool = True

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Weight [channels, inputs] and bias [channels]."""
        weight: dict[str, tuple[int, ...]] = {"weight": (self.shape[0], self.inputs)}
        return weight | {"bias": self.shape} if self.biased else weight

    @property
    def terms(self) -> int:
        """A term for each input."""
        return self.inputs

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """The products, and the bias."""
        products: Array = entering[0] @ parameters[0].T
        return products + parameters[1] if self.biased else products

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Through the weight."""
        return [cotangent @ parameters[0]]

    def gradients(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Sums over images."""
        of_weight = cotangent.T @ entering[0]
        return [of_weight, cotangent.sum(0)] if self.biased else [of_weight]

    def gradient_sizes(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[float]:
        """The size of the terms: sums over images cancel."""
        return _of_terms(self.gradients([entering[0] ** 2], parameters, cotangent**2))


def _of_terms(squares: Sequence[Array]) -> list[float]:
    """The norm of sums whose terms, squared, have these sums, if the signs of the terms were random."""
    return [float(np.sqrt(each.sum())) for each in squares]


def _broadcast(by_channel: Array) -> Array:
    """A number for each channel, at all places of an image."""
    return by_channel[:, None, None]
