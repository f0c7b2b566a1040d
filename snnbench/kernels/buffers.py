"""Large arrays on the CPU, whose memory stays for the next pass that needs as much, where `reuse_memory()` was called.

Fresh memory is the dearest thing in a pass on the CPU: the kernel zeroes every page at its first touch. At N = 512,
T = 500, B = 16 two fresh arrays of 16 MiB made a training pass of 48 ms one of 54 ms, where its two matrix products
took 44 (2 cores of an EPYC of the Zen 4 generation; huge pages were as slow as often as they were fast). So what a
pass frees is not given back at once. It is given back where a pass asks for another size than there is, and at every
full garbage collection, so `gc.collect()` empties it. A tensor here cannot be resized, as none that NumPy made.
"""

import gc
import math
import weakref
from typing import Any

import numpy as np
import torch

SMALLEST_BYTES = 1 << 20
ALIGNMENT = 64
"""Bytes: a cache line, and the widest store there is."""

_free: dict[int, list[Any]] = {}
"""Size in bytes -> NumPy arrays that nobody uses."""
_reused = False


def reuse_memory(reuse: bool = True) -> None:
    """Keep the memory of large arrays on the CPU from one pass to the next, in this process; or no longer.

    It is off until it is called. Meanwhile a callback of the garbage collector gives memory back that is not in use.
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
    """A contiguous tensor with anything in it, as of torch.empty; memory is used again after `reuse_memory()`."""
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
    # torch holds on to `lent`, for as long as any tensor sees this memory.
    weakref.finalize(lent, _take_back, size, raw).atexit = False
    return torch.from_numpy(lent).view(dtype).view(shape)


def release() -> None:
    """Give back to the system what is not in use."""
    _free.clear()


def _take_back(size: int, raw: Any) -> None:
    if _reused:
        _free.setdefault(size, []).append(raw)


def _on_collection(phase: str, about: dict[str, int]) -> None:
    if phase == "start" and about["generation"] == 2:
        release()
