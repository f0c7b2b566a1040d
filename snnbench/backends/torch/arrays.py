"""Tensors on one device, for arithmetic in float64 beside a network."""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from snnbench.cases import answer

FULL_BYTES = 4


class Arrays(answer.Arrays):
    """Tensors of a device."""

    m = torch

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def exact(self) -> AbstractContextManager[Any]:
        """float64 always exists."""
        context: AbstractContextManager[Any] = torch.no_grad()
        return context

    def put(self, array: NDArray[np.float32]) -> torch.Tensor:
        """The array itself on the CPU, which nothing writes to."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def float64(self, array: torch.Tensor) -> torch.Tensor:
        """The tensor in float64."""
        return array.to(torch.float64)

    def numpy(self, array: torch.Tensor) -> NDArray[Any]:
        """A copy on the host; NumPy has no bfloat16."""
        is_narrow = array.is_floating_point() and array.element_size() < FULL_BYTES
        copy: NDArray[Any] = (array.float() if is_narrow else array).detach().cpu().numpy()
        return copy

    def copied(self, array: torch.Tensor, target: torch.Tensor | None) -> torch.Tensor:
        """A copy on the device."""
        if target is None or (target.shape, target.dtype) != (array.shape, array.dtype):
            return array.detach().clone(memory_format=torch.contiguous_format)
        return target.copy_(array)

    def begin(self) -> None:
        """Set the allocator's peak to the bytes in use now."""
        torch.cuda.reset_peak_memory_stats(self._device)

    def free_bytes(self) -> int:
        """What the driver and PyTorch's allocator have left, beside the allocator's peak."""
        free, _ = torch.cuda.mem_get_info(self._device)
        taken = torch.cuda.max_memory_allocated(self._device) + unused_private_bytes(torch.cuda.memory_snapshot())
        return int(free + torch.cuda.memory_reserved(self._device) - taken)


def unused_private_bytes(snapshot: list[dict[str, Any]]) -> int:
    """Unused bytes in the private pools of graphs, in a snapshot of torch's allocator.

    Memory that a captured pass frees stays in its graph's pool, and the allocator does not count it as in use.
    """
    private = (segment for segment in snapshot if tuple(segment["segment_pool_id"]) != (0, 0))
    return sum(segment["total_size"] - segment["allocated_size"] for segment in private)
