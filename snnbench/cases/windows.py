"""Operations on windows: convolutions, maxima and sums of the places near each other in an image."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from snnbench.cases.operations import Array, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution(Operation):
    """A convolution along one or two axes of places, with zeros beside the image, and a bias if it is `biased`.

    `size`, `stride`, `padding` and `dilation` have a number for each of these axes.
    """

    channelwise: ClassVar[bool] = False

    inputs: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    biased: bool = False

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """The kernel [channels, inputs, *size], and the bias [channels]."""
        kernel = {"weight": (self.shape[0], self.inputs, *self.size)}
        return kernel | {"bias": self.shape[:1]} if self.biased else kernel

    @property
    def terms(self) -> int:
        """A term for each entry of a channel's kernel."""
        return self.inputs * prod(self.size)

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """Sums over shifted images, and the bias."""
        kernel = parameters[0]
        total: Array | float = 0.0
        for entry, image in self._shifted(_padded(entering[0], self.padding, 0.0)):
            total = total + np.tensordot(image, kernel[entry], (1, 1))
        sums = np.moveaxis(np.asarray(total), -1, 1)
        return sums + parameters[1].reshape(-1, *(1,) * len(self.size)) if self.biased else sums

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """The kernel's entries times the cotangent, at the places that they read."""
        kernel = parameters[0]
        padded = np.zeros(_padded(entering[0], self.padding, 0.0).shape)
        for entry, image in self._shifted(padded):
            image += np.moveaxis(np.tensordot(cotangent, kernel[entry], (1, 0)), -1, 1)
        return [_inside(padded, self.padding)]

    def gradients(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """Sums over images and places."""
        axes = (0, *range(2, cotangent.ndim))
        gradient = np.empty((cotangent.shape[1], *entering[0].shape[1:2], *self.size))
        for entry, image in self._shifted(_padded(entering[0], self.padding, 0.0)):
            gradient[entry] = np.tensordot(cotangent, image, (axes, axes))
        return [gradient, cotangent.sum(axes)] if self.biased else [gradient]

    def gradient_sizes(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[float]:
        """The largest norm of each sum over some images: over the first ones, or over the first of groups j, j + d, ...

        A normalisation of the batch after the convolution makes the images cancel, so sums of fewer of them are larger.
        A program whose batch comes first adds up all steps of a sample, which are alike, before the next sample's.
        """
        largest = [0.0 for _ in self.parameters]
        images = len(cotangent)
        for groups in (count for count in range(2, images + 1) if images % count == 0):
            totals: list[Array | float] = [0.0 for _ in self.parameters]
            for first in range(groups):
                gradients = self.gradients([entering[0][first::groups]], parameters, cotangent[first::groups])
                totals = [total + gradient for total, gradient in zip(totals, gradients, strict=True)]
                largest = [max(size, float(np.linalg.norm(total))) for size, total in zip(largest, totals, strict=True)]
        return largest

    def _shifted(self, padded: Array) -> Iterator[tuple[Any, Array]]:
        return _shifted(padded, self.size, self.stride, self.dilation)


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
        chosen, padding = self._windows(entering[0]).argmax(0), (self.padding, self.padding)
        padded = np.zeros(_padded(entering[0], padding, 0.0).shape)
        for number, image in enumerate(self._shifted(padded)):
            image += np.where(chosen == number, cotangent, 0.0)
        return [_inside(padded, padding)]

    def _windows(self, image: Array) -> Array:
        return np.stack(list(self._shifted(_padded(image, (self.padding, self.padding), -np.inf))))

    def _shifted(self, padded: Array) -> Iterator[Array]:
        for _, image in _shifted(padded, (self.size, self.size), (self.stride, self.stride), (1, 1)):
            yield image


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSum(Operation):
    """The sum of each window along one or two axes of places, with zeros beside the image.

    If it `is_mean`, the sum is divided by the number of the window's places. `size`, `stride` and `padding` have a
    number for each axis of places.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    is_mean: bool = False

    @property
    def terms(self) -> int:
        """A term for each place of the window."""
        return prod(self.size)

    @property
    def divisor(self) -> int:
        """The number that divides a sum."""
        return prod(self.size) if self.is_mean else 1

    def value(self, entering: Sequence[Array], parameters: Sequence[Array]) -> Array:
        """Sums of shifted images."""
        total: Array | float = 0.0
        for image in self._shifted(_padded(entering[0], self.padding, 0.0)):
            total = total + image
        return np.asarray(total) / self.divisor

    def backward(self, entering: Sequence[Array], parameters: Sequence[Array], cotangent: Array) -> list[Array]:
        """The cotangent, at each place of a window."""
        padded = np.zeros(_padded(entering[0], self.padding, 0.0).shape)
        for image in self._shifted(padded):
            image += cotangent / self.divisor
        return [_inside(padded, self.padding)]

    def _shifted(self, padded: Array) -> Iterator[Array]:
        for _, image in _shifted(padded, self.size, self.stride, (1,) * len(self.size)):
            yield image


def _padded(image: Array, padding: Sequence[int], value: float) -> Array:
    return np.pad(image, [(0, 0), (0, 0), *((each, each) for each in padding)], constant_values=value)


def _inside(padded: Array, padding: Sequence[int]) -> Array:
    """The image without what is around it."""
    lengths = zip(padding, padded.shape[2:], strict=True)
    places: Any = (..., *(slice(each, length - each) for each, length in lengths))
    image: Array = padded[places]
    return image


def _shifted(
    padded: Array, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Iterator[tuple[Any, Array]]:
    """For each entry of a window, by rows: its index in a kernel, and the view of that entry in all windows."""
    along = list(zip(padded.shape[2:], size, stride, dilation, strict=True))
    for places in np.ndindex(*size):
        view: Any = [...]
        for place, (length, count, step, apart) in zip(places, along, strict=True):
            view.append(slice(apart * place, length - apart * (count - 1 - place), step))
        yield (..., *places), padded[tuple(view)]
