"""Large arrays on the CPU that keep their memory for the next pass of the same size, after `reuse_memory()`.

Fresh memory is expensive in a pass on the CPU: the operating system zeroes every page at its first touch. At N = 512,
T = 500, B = 16 two fresh arrays of 16 MiB slowed a training pass from 48 ms to 54 ms; its two matrix products took 44
(2 cores of an EPYC of the Zen 4 generation; huge pages were slow as often as fast). So memory that a pass frees is
kept. It is given back if a pass asks for a size that is not kept, and at every full garbage collection, so
`gc.collect()` frees it. Like all tensors over NumPy arrays, these tensors cannot be resized.
"""

import gc
import math
import weakref
from typing import Any

import numpy as np
import torch

SMALLEST_BYTES = 1 << 20
ALIGNMENT = 64
"""Bytes of a cache line, and of the widest store."""

_free: dict[int, list[Any]] = {}
"""Size in bytes -> unused NumPy arrays."""
_reused = False


def reuse_memory(reuse: bool = True) -> None:
    """Keep the memory of large arrays on the CPU from one pass to the next, in this process; or stop that.

    Reuse is off at first. While it is on, a callback of the garbage collector gives unused memory back.
    """
    global _reused
    _reused = reuse
    if reuse and _on_collection not in gc.callbacks:
        gc.callbacks.append(_on_collection)
    if not reuse:
        release()
        if _on_collection in gc.callbacks:
            gc.callbacks.remove(_on_collection)


def empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A contiguous uninitialised tensor, like torch.empty; its memory is reused after `reuse_memory()`."""
    size = math.prod(shape) * dtype.itemsize
    if not _reused or device.type != "cpu" or size < SMALLEST_BYTES:
        return torch.empty(shape, dtype=dtype, device=device)
    waiting = _free.get(size)
    if waiting:
        raw = waiting.pop()
    else:
        release()
        raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    lent = raw[start : start + size]
    # torch keeps `lent` alive as long as any tensor uses this memory.
    weakref.finalize(lent, _take_back, size, raw).atexit = False
    return torch.from_numpy(lent).view(dtype).view(shape)


def release() -> None:
    """Give unused memory back to the system."""
    _free.clear()


def _take_back(size: int, raw: Any) -> None:
    if _reused:
        _free.setdefault(size, []).append(raw)


def _on_collection(phase: str, about: dict[str, int]) -> None:
    if phase == "start" and about["generation"] == 2:
        release()
