"""One pass of a layer: its arguments, the gradients that it computes, and the formats of numbers."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from snnbench.kernels.neuron import Neuron

KEEPS = ("potential", "bfloat16", "nothing")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class Layer(NamedTuple):
    """All that determines a layer's output: `inputs` [T, B, N_in], parameters, and the initial `potential` [B, N].

    Without a `weight` [N, N_in] the inputs are the currents; `bias` [N] may be None, too, and so may `potential`, for
    zeros. `inputs`, `weight` and `potential` are contiguous, and the potential is in the state's format. `keep` is one
    of KEEPS, "" for inference. `needs_last` is whether the caller wants the potential after the last step.
    """

    inputs: Tensor
    weight: Tensor | None
    bias: Tensor | None
    potential: Tensor | None
    neuron: Neuron
    keep: str
    kernel_name: str
    needs_last: bool = True

    @property
    def shape(self) -> tuple[int, int, int]:
        """(steps, batch, neurons)."""
        steps, batch, entering = self.inputs.shape
        return steps, batch, entering if self.weight is None else self.weight.shape[0]

    @property
    def start(self) -> Tensor:
        """The initial potential [B, N]."""
        if self.potential is not None:
            return self.potential
        return self.inputs.new_zeros(self.shape[1:], dtype=state_dtype(self.inputs.dtype))

    @property
    def offset(self) -> Tensor | None:
        """The bias [N] for every column [B * N]."""
        if self.bias is None:
            return None
        bias = self.bias.to(state_dtype(self.inputs.dtype))
        return bias.expand(self.shape[1], -1).reshape(-1)  # Tensor.repeat takes the host five times as long


def prepared(
    inputs: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    potential: Tensor | None,
    neuron: Neuron,
    keep: str,
    kernel_name: str,
    needs_last: bool = True,
) -> Layer:
    """The layer of a user's arguments: contiguous, and the potential in the state's format."""
    weight = None if weight is None else weight.contiguous()
    if potential is not None:
        potential = potential.to(state_dtype(inputs.dtype)).contiguous()
    return Layer(inputs.contiguous(), weight, bias, potential, neuron, keep, kernel_name, needs_last)


class Wanted(NamedTuple):
    """Which gradients are required."""

    input: bool
    weight: bool
    bias: bool
    parameters: bool
    potential: bool = True


@dataclass(slots=True)
class Gradients:
    """dL/d of each field, None if it is not required. `beta` and `threshold` are single numbers."""

    potential: Any = None
    input: Any = None
    weight: Any = None
    bias: Any = None
    beta: Any = None
    threshold: Any = None


def state_dtype(dtype: torch.dtype) -> torch.dtype:
    """The format of the state for currents in `dtype`."""
    return torch.float64 if dtype == torch.float64 else torch.float32
