"""Parts that only some workloads have, as a workload without them has them."""

from collections.abc import Callable, Mapping
from typing import Any

PACKAGES: tuple[str, ...] = ()
"""Requirements of a worker beside those of its library."""
OVERRIDES: tuple[str, ...] = ()
"""Overrides of what these require."""
IMPLIED_BY = ""
"""The axis by which a sweep that names no workload is one of this."""


def pipeline_blocks(case: Any, split: str) -> int | None:
    """The blocks of a pipeline if the processes of a case form one under this split, else None.

    Models of its time are drawn beside the measured times.
    """
    return None


def is_of_step(case: Any, name: str) -> bool:
    """Whether a product is that of one time step."""
    return False


def spared(case: Any, phase: str, rates: Mapping[str, float]) -> Mapping[str, float]:
    """How many of each of `products` zeros spare a program that looks for them, in the input and in spikes."""
    return {}


def product_rows(case: Any, prefix: str) -> int:
    """The rows of products whose names begin so: those of all steps."""
    rows: int = case.time_steps * case.batch
    return rows


def convolutions(case: Any) -> Mapping[str, Any]:
    """A convolution of each kind in a case, with the shape of the image that enters; empty if it has none.

    `products` counts them, as "KIND.value", "KIND.kernel-gradient" and "KIND.image-gradient".
    """
    return {}


def prepare(case: Any, each: Callable[[int, int], None]) -> None:
    """Make what a case needs on the disk of this machine; `each` gets the progress."""
