"""Causes of torch errors on a device: the first cause, and whether memory ran out."""

import torch

OUT_OF_MEMORY = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""Texts of out-of-memory errors of other types: those of a graph's instantiation and of the libraries."""


def first_cause(error: BaseException) -> BaseException:
    """The first error of a chain: when a capture fails, the error of its end hides the cause."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return error


def is_out_of_device_memory(error: BaseException) -> bool:
    """Whether the device had no memory left."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in OUT_OF_MEMORY)
