"""Large arrays on the CPU that keep their memory for the next pass of the same size, after `reuse_memory()`.

Fresh memory is expensive in a pass on the CPU: the operating system zeroes every page at its first touch. At N = 512,
T = 500, B = 16 two fresh arrays of 16 MiB slowed a training pass from 48 ms to 54 ms; its two matrix products took 44
(2 cores of an EPYC of the Zen 4 generation; huge pages were slow as often as fast). So memory that a pass frees is
kept. It is given back if a pass asks for a shape that is not kept, and at every full garbage collection, so
`gc.collect()` frees it. Like all tensors over NumPy arrays, these tensors cannot be resized.
"""

import gc
import math
from collections.abc import Callable
from sys import getrefcount
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

SMALLEST_BYTES = 1 << 16
"""Smaller arrays are left to torch: the C library keeps their memory itself."""
ALIGNMENT = 64
"""Bytes of a cache line, and of the widest store."""
IDLE = 2
"""References to an array that no tensor uses: the list's, and the argument of `getrefcount`."""

FORMATS = {torch.float32: np.float32, torch.float64: np.float64, torch.float16: np.float16}
"""NumPy has no bfloat16; such an array has bytes."""

Key: TypeAlias = tuple[tuple[int, ...], torch.dtype]

_arrays: dict[Key, list[NDArray[Any]]] = {}
"""(shape, format) -> all such arrays. A tensor holds its array, so the count of references shows its use."""
_lock = Lock()
_reused = False
_pools: list[Callable[[bool], None]] = []
"""Pools of other modules."""


def reuse_memory(reuse: bool = True) -> None:
    """Keep the memory of large arrays on the CPU from one pass to the next, in this process; or stop that.

    Reuse is off at first. While it is on, a callback of the garbage collector gives unused memory back.
    """
    global _reused
    _reused = reuse
    _tell_pools()
    if reuse and _on_collection not in gc.callbacks:
        gc.callbacks.append(_on_collection)
    if not reuse:
        with _lock:
            _arrays.clear()
        if _on_collection in gc.callbacks:
            gc.callbacks.remove(_on_collection)


def empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A contiguous uninitialised tensor, like torch.empty; its memory is reused after `reuse_memory()`."""
    if not _reused or device.type != "cpu" or math.prod(shape) * dtype.itemsize < SMALLEST_BYTES:
        return torch.empty(shape, dtype=dtype, device=device)
    with _lock:
        array = _array((shape, dtype))
    # Not a view of another tensor: autograd refuses to change a view in place that a function returns.
    if dtype in FORMATS:
        return torch.from_numpy(array)
    return torch.empty(0, dtype=dtype).set_(torch.from_numpy(array).untyped_storage(), 0, shape, _contiguous(shape))


def _contiguous(shape: tuple[int, ...]) -> list[int]:
    """The strides of a contiguous tensor, in elements."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _array(key: Key) -> NDArray[Any]:
    """An idle array. If no array is idle, a fresh one."""
    arrays = _arrays.get(key, [])
    for number in range(len(arrays)):
        if getrefcount(arrays[number]) == IDLE:
            return arrays[number]
    _drop_idle()
    shape, dtype = key
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    array: NDArray[Any] = memory[start : start + size]
    if dtype in FORMATS:
        array = array.view(FORMATS[dtype]).reshape(shape)
    _arrays.setdefault(key, []).append(array)
    return array


def join(pool: Callable[[bool], None]) -> None:
    """Let another pool follow this one. Each call tells it whether to reuse memory, and makes it drop idle memory."""
    _pools.append(pool)
    pool(_reused)


def release() -> None:
    """Give unused memory back to the system."""
    with _lock:
        _drop_idle()
    _tell_pools()


def _tell_pools() -> None:
    for pool in _pools:
        pool(_reused)


def _drop_idle() -> None:
    for key, arrays in list(_arrays.items()):
        used = [number for number in range(len(arrays)) if getrefcount(arrays[number]) > IDLE]
        _arrays[key] = [arrays[number] for number in used]
        if not used:
            del _arrays[key]


def _on_collection(phase: str, about: dict[str, int]) -> None:
    # A collection may begin inside of `empty`, in the thread that holds the lock.
    if phase == "start" and about["generation"] == 2 and _lock.acquire(blocking=False):
        try:
            _drop_idle()
        finally:
            _lock.release()
        _tell_pools()
