"""Transforms of torch.func: the layer's values may be mapped, its derivatives may not be taken there."""

import torch
from torch import Tensor

from snnbench.adapter.refusal import Unsupported

_functorch = torch._C._functorch


def refuse_derivatives(*tensors: Tensor | None) -> None:
    """Raise Unsupported if a transform would differentiate the layer, or hides from it that a tensor has a gradient."""
    for tensor in tensors:
        while tensor is not None and _functorch.is_functorch_wrapped_tensor(tensor):
            inner = _functorch.get_unwrapped(tensor)
            if _functorch.is_gradtrackingtensor(tensor) or (torch.is_grad_enabled() and inner.requires_grad):
                raise Unsupported(
                    "lif and linear_lif have no derivatives inside of torch.vmap and torch.func.grad: loop over the "
                    "slices, and take gradients with torch.autograd.grad"
                )
            tensor = inner
