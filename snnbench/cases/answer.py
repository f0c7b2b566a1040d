"""An answer: the outputs of a pass of a network, in the order of the harness, as NumPy arrays or where they are."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Arrays(Protocol):
    """A framework's arrays on a device. `m` has its functions, named as NumPy's: `where`, `abs`, `stack`."""

    m: Any

    def exact(self) -> AbstractContextManager[Any]:
        """A context in which float64 exists and nothing is recorded for gradients."""

    def put(self, array: NDArray[np.float32]) -> Any:
        """The array on the device."""

    def float64(self, array: Any) -> Any:
        """The array in float64; booleans become 0 and 1."""

    def numpy(self, array: Any) -> NDArray[Any]:
        """A copy on the host."""

    def copied(self, array: Any, target: Any | None) -> Any:
        """A copy on the device, in the memory of `target` if it has the same shape and format."""

    def begin(self) -> None:
        """Count the most memory in use from here on, if the framework can begin anew."""

    def free_bytes(self) -> int:
        """The memory of the device that was free even when the most was in use."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """An array on a device. Parts of it are copied to the host when they are read, with NumPy's indices."""

    native: Any
    arrays: Arrays

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths."""
        return tuple(self.native.shape)

    def __getitem__(self, places: Any) -> NDArray[Any]:
        return self.arrays.numpy(self.native[places])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.arrays.numpy(self.native), dtype)

    def in_order(self, order: NDArray[np.intp]) -> "Held":
        """The array with its second axis, the batch, in this order."""
        return Held(self.native[:, order], self.arrays)

    def copied(self, target: "Held | None") -> "Held":
        """A copy on the device, which may overwrite `target`."""
        return Held(self.arrays.copied(self.native, target and target.native), self.arrays)


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of a pass, in the order [T, B, N]; None for outputs that it does not compute. Gradients by layer.

    All are NumPy arrays, or all are `Held` by a device.

    `constants` are the gradients of the trained constants of the first layer, then of the next.

    A network that is no stack answers with its outputs [T, B, classes] in place of spikes. Its `weights` are the
    gradients of all its parameters in order, and its `biases` are empty.
    """

    spikes: Any | None
    weights: list[Any] | None = None
    biases: list[Any] | None = None
    input: Any | None = None
    constants: list[Any] | None = None

    def constant(self, number: int) -> Any | None:
        """The gradient of one of the trained constants; None if the answer lacks it."""
        given = self.constants or []
        return given[number] if number < len(given) else None

    def each(self, function: Callable[[Any], Any]) -> "Answer":
        """The answer with `function` of each array."""
        return Answer(
            None if self.spikes is None else function(self.spikes),
            None if self.weights is None else list(map(function, self.weights)),
            None if self.biases is None else list(map(function, self.biases)),
            None if self.input is None else function(self.input),
            None if self.constants is None else list(map(function, self.constants)),
        )


@dataclass(frozen=True, slots=True)
class Recording:
    """The answer of a pass, with the value of each operation and its gradient, [T, B, ...], in the harness's units.

    `repeats_bits` says whether a pass that is not recorded has all bits of this one, because its sums have the same
    order. Otherwise only the outputs have the same bits.
    """

    answer: Answer
    values: dict[str, NDArray[Any]]
    cotangents: dict[str, NDArray[Any]]
    repeats_bits: bool = True


def times(array: NDArray[Any], factor: float) -> NDArray[Any]:
    """The product; the array itself for a factor of 1, since a copy of a large one takes seconds."""
    return array if factor == 1 else array * factor
