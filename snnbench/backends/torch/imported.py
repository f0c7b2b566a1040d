"""Networks that a library's importer made of a NIR graph, stepped through time."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

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
