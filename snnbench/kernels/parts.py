"""The parts of a layer [T, B, N] that ranks own, and the pieces of equal size that they are made of."""

from itertools import pairwise
from typing import Literal

Split = Literal["temporal", "batch", "neurons"]
AXES: dict[Split, int] = {"temporal": 0, "batch": 1, "neurons": 2}
"""The axis of [T, B, N] that each split divides."""
UNITS = ("steps", "samples", "neurons")


def pieces(size: int, count: int, unit: int = 1) -> list[slice]:
    """`size` items in `count` contiguous pieces of equal size; the first ones are longer by one if need be.

    Pieces begin at multiples of `unit`, and their sizes differ by as much.
    """
    length, longer = divmod(-(-size // unit), count)
    ends = [min(size, unit * (number * length + min(number, longer))) for number in range(count + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


def part(split: Split, shape: tuple[int, int, int], rank: int, ranks: int) -> tuple[slice, slice, slice]:
    """The slices of [T, B, N] = `shape` that the rank owns; sizes differ by at most one, and the first are the longer.

    Raises ValueError for an unknown split, a rank outside 0 .. ranks - 1, and more ranks than steps, samples or
    neurons.
    """
    if split not in AXES:
        raise ValueError(f"split {split!r}: expected one of {', '.join(AXES)}")
    if not 0 <= rank < ranks:
        raise ValueError(f"rank {rank} of {ranks}: expected 0 to {ranks - 1}")
    axis = AXES[split]
    if ranks > shape[axis]:
        raise ValueError(f"{ranks} ranks for {shape[axis]} {UNITS[axis]}: expected one each at least")
    steps, samples, neurons = (
        pieces(size, ranks)[rank] if number == axis else slice(0, size) for number, size in enumerate(shape)
    )
    return steps, samples, neurons
