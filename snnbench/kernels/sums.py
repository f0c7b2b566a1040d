"""The gradients that a kernel's backward pass adds up over all steps."""

from typing import NamedTuple

from torch import Tensor


class Sums(NamedTuple):
    """The gradients of a column's parameters: `bias`, `beta` and `threshold` [M], each None if it is not required.

    A backward pass adds dL/dbias, dL/dbeta and dL/dthreshold of each column to them. `start` [M] is v before the first
    step, needed with `beta`.
    """

    bias: Tensor | None = None
    beta: Tensor | None = None
    threshold: Tensor | None = None
    start: Tensor | None = None


NO_SUMS = Sums()
