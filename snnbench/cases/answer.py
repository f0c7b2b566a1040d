"""An answer: the outputs of a pass of a network, as NumPy arrays in the order of the harness."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of a pass, in the order [T, B, N]; None for outputs that it does not compute. Gradients by layer."""

    spikes: NDArray[Any] | None
    weights: list[NDArray[Any]] | None = None
    biases: list[NDArray[Any]] | None = None
    input: NDArray[Any] | None = None
