"""Arrays of JAX on one device, for arithmetic in float64 beside a network."""

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from snnbench.cases import answer


class Arrays(answer.Arrays):
    """Arrays of a device."""

    m = jnp

    def __init__(self, device: Any) -> None:
        self._device = device

    def exact(self) -> AbstractContextManager[Any]:
        """JAX has float64 in a context only."""
        context: AbstractContextManager[Any] = jax.enable_x64(True)
        return context

    def put(self, array: NDArray[np.float32]) -> jax.Array:
        """The array on the device."""
        return jax.device_put(array, self._device)

    def float64(self, array: jax.Array) -> jax.Array:
        """The array in float64."""
        return array.astype(jnp.float64)

    def numpy(self, array: jax.Array) -> NDArray[Any]:
        """A copy on the host."""
        return np.asarray(array)

    def copied(self, array: jax.Array, target: jax.Array | None) -> jax.Array:
        """The array itself: nothing can write to it."""
        return array

    def begin(self) -> None:
        """Nothing: XLA's peak is that of the whole process."""

    def free_bytes(self) -> int:
        """What XLA's allocator has left, beside its peak; 0 if it keeps no account."""
        statistics = self._device.memory_stats() or {}
        return int(statistics.get("bytes_limit", 0) - statistics.get("peak_bytes_in_use", 0))
