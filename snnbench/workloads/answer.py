"""An answer: what a pass of a network gave, as NumPy arrays in the order of the harness."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Answer:
    """What a pass gave, in the order [T, B, N]; None for what that pass does not compute. Gradients by layer."""

    spikes: NDArray[Any] | None
    weights: list[NDArray[Any]] | None = None
    biases: list[NDArray[Any]] | None = None
    input: NDArray[Any] | None = None
