"""Recurrence: a layer whose neurons also get the spikes of the layer itself, one step later, through weights R.

    x[t] = W e[t] + b + R s[t-1]            e: what enters the layer; s[-1] = 0

The harness holds W [N, M] and R [N, N] side by side, as one weight [N, M + N]. With what enters and the spikes of the
step before side by side, too, a recurrent layer is a linear one, and so are its gradients of W, R and b.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def split(weight: Any, entering: int) -> tuple[Any, Any | None]:
    """W [N, M] and R [N, N] of a weight [N, M + N]; R is None for a layer without recurrence."""
    return (weight, None) if weight.shape[1] == entering else (weight[:, :entering], weight[:, entering:])


def split_all(layers: Sequence[tuple[Any, Any]], entering: int) -> list[tuple[Any, Any, Any | None]]:
    """(W, bias, R) of each layer of a stack with so many inputs."""
    parts = []
    for weight, bias in layers:
        forward, recurrent = split(weight, entering)
        parts.append((forward, bias, recurrent))
        entering = len(weight)
    return parts


def own_gradient(gradient: NDArray[Any], spikes: NDArray[Any]) -> NDArray[np.float64]:
    """dL/dR [N, N] for dL/d(current) [T, B, N] and the layer's spikes [T, B, N]."""
    products: NDArray[np.float64] = np.tensordot(gradient[1:], spikes[:-1], ((0, 1), (0, 1)))
    return products


def own_size(gradient: NDArray[Any], spikes: NDArray[Any]) -> float:
    """The norm of dL/dR if the signs of its terms were random."""
    return float(np.sqrt(own_gradient(gradient**2, spikes**2).sum()))


def given_own(
    current: NDArray[Any], spikes: NDArray[Any], cotangent: NDArray[Any], gradient: NDArray[Any], own: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The current and the cotangent [T, B, N] of each neuron by itself, for what its layer did.

    `current` is what enters the layer and `gradient` that of it, and `own` are the weights [N, N] of its own spikes.
    """
    entering, arriving = current.astype(np.float64), cotangent.astype(np.float64)
    entering[1:] += spikes[:-1] @ own.T
    arriving[:-1] += gradient[1:] @ own
    return entering, arriving


def beside_own(entering: NDArray[Any], spikes: NDArray[Any]) -> NDArray[Any]:
    """What enters [T, B, M] beside the layer's own spikes [T, B, N] of the step before: [T, B, M + N]."""
    before = np.concatenate([np.zeros_like(spikes[:1]), spikes[:-1]])
    return np.concatenate([entering, before.astype(entering.dtype, copy=False)], axis=2)
