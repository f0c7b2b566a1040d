"""Gradients by autograd's engine."""

from collections.abc import Sequence

import torch
from torch.autograd.graph import _engine_run_backward


def gradients_of(
    output: torch.Tensor, inputs: Sequence[torch.Tensor], cotangent: torch.Tensor, again: bool = False
) -> tuple[torch.Tensor, ...]:
    """The gradients of `inputs` for this cotangent of `output`; the graph is kept if it is needed `again`.

    It is `torch.autograd.grad` without its check of shapes: that check loads SymPy, and the backward pass of a loss,
    which is a number, has none. The engine raises RuntimeError if the cotangent's shape is wrong.
    """
    gradients: tuple[torch.Tensor, ...] = _engine_run_backward(
        (output,), (cotangent,), again, False, tuple(inputs), allow_unreachable=False, accumulate_grad=False
    )
    return gradients
