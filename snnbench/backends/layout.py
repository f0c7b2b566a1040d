"""Conversion between the harness's order [T, B, N] and a library's own, outside the timed region.

If a library's output is late by some steps, its input gets as many steps of silence at the end, and its output loses as
many steps at the start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snnbench.adapter.refusal import Incorrect


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout: `order` is a permutation of "TBN", `latency` the number of steps by which the output is late.

    An input may have more axes: those of an image, after its channels.
    """

    order: str
    latency: int = 0

    def input(self, array: NDArray[Any]) -> NDArray[Any]:
        """[T, B, N] input to the library's order."""
        return self._arrange(np.pad(array, ((0, self.latency), (0, 0), (0, 0))) if self.latency else array)

    def cotangent(self, array: NDArray[Any]) -> NDArray[Any]:
        """[T, B, N] cotangent of the output to the library's order."""
        return self._arrange(np.pad(array, ((self.latency, 0), (0, 0), (0, 0))) if self.latency else array)

    def spikes(self, array: Any) -> Any:
        """The library's output to [T, B, N]; a tensor of torch stays one."""
        return self._back(array)[self.latency :]

    def input_gradient(self, array: Any) -> Any:
        """The library's gradient of its input to [T, B, N]."""
        back = self._back(array)
        return back[: len(back) - self.latency]

    def require(self, output: Any, shape: Sequence[int]) -> None:
        """Raise Incorrect unless a library's output is an array of this shape."""
        axes = f"[{', '.join(self.order)}]"
        if (got := getattr(output, "shape", None)) is None:
            raise Incorrect(f"the output is a {type(output).__name__}, expected an array of spikes {axes}")
        if tuple(got) != tuple(shape):
            raise Incorrect(f"output of shape {list(got)}, expected {list(shape)}: {axes}, by ORDER = {self.order!r}")

    def _arrange(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(array.transpose(_axes("TBN", self.order, array)))

    def _back(self, array: Any) -> Any:
        if array.ndim != 3:
            return array
        axes = _axes(self.order, "TBN", array)
        return array.permute(axes) if hasattr(array, "permute") else array.transpose(axes)


def require_type(output: Any, *types: type) -> Any:
    """An output, if it is of one of these types exactly. Raises Incorrect.

    A subclass may compute when it is read, after the clock has stopped.
    """
    if type(output) not in types:
        expected = " or ".join(f"{each.__module__}.{each.__qualname__}" for each in types)
        got = f"{type(output).__module__}.{type(output).__qualname__}"
        raise Incorrect(f"an output is a {got}, expected {expected}: return plain arrays")
    return output


def _axes(of: str, order: str, array: NDArray[Any]) -> list[int]:
    """The axes of an array in the order `of`, sorted to be in `order`; all others stay."""
    return [*(of.index(axis) for axis in order), *range(3, array.ndim)]
