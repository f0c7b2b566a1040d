"""An answer: the outputs of a pass of a network, as NumPy arrays in the order of the harness."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of a pass, in the order [T, B, N]; None for outputs that it does not compute. Gradients by layer.

    A network that is no stack answers with its outputs [T, B, classes] in place of spikes. Its `weights` are the
    gradients of all its parameters in order, and its `biases` are empty.
    """

    spikes: NDArray[Any] | None
    weights: list[NDArray[Any]] | None = None
    biases: list[NDArray[Any]] | None = None
    input: NDArray[Any] | None = None


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
