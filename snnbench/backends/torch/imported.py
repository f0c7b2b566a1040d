"""Networks of NIR graphs: a library's imported network stepped through time, and its own network to be exported."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from snnbench.cases.case import Case

Array = NDArray[np.float32]


def stepped_network(network: Callable[..., tuple[torch.Tensor, object]]) -> Callable[[Array], torch.Tensor]:
    """A function from input [T, B, ...] to output [T, B, ...], without gradients.

    The network takes the input of one step and its state, None at first, and returns its output and its new state.
    """

    def run(given: Array) -> torch.Tensor:
        state, outputs = None, []
        with torch.no_grad():
            for current in torch.from_numpy(given):
                output, state = network(current, state)
                outputs.append(output)
        return torch.stack(outputs)

    return run


def modules(
    layers: Sequence[tuple[Array, Array, Case]], neuron: Callable[[Case, int], tuple[torch.nn.Module, float]]
) -> list[torch.nn.Module]:
    """A Linear of each layer's weight [N, M] and bias [N] by a gain, and neurons; `neuron(case, N)` gives these two."""
    made: list[torch.nn.Module] = []
    for weight, bias, case in layers:
        neurons, gain = neuron(case, len(bias))
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight) * gain)
            linear.bias.copy_(torch.from_numpy(bias) * gain)
        made += [linear, neurons]
    return made
