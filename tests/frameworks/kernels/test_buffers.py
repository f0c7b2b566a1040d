"""Tests of memory that is kept for the next pass: it is lent once at a time, and freed when no longer needed."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from snnbench.kernels import buffers

CPU = torch.device("cpu")
POOL = buffers._arrays
LARGE = (3, buffers.SMALLEST_BYTES)


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    buffers.release()
    buffers.reuse_memory()
    yield
    buffers.reuse_memory(False)


def waiting() -> list[buffers.Key]:
    """Shapes and formats of the idle arrays."""
    counts = {key: [sys.getrefcount(arrays[number]) for number in range(len(arrays))] for key, arrays in POOL.items()}
    return [key for key, numbers in counts.items() for number in numbers if number == buffers.IDLE]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_tensor_as_torch_s_own(dtype: torch.dtype) -> None:
    tensor = buffers.empty(LARGE, dtype, CPU)
    assert (tensor.shape, tensor.dtype, tensor.device) == (LARGE, dtype, CPU)
    assert tensor.is_contiguous() and tensor.data_ptr() % buffers.ALIGNMENT == 0
    tensor.fill_(1.0)
    assert float(tensor.float().mean()) == 1.0


def test_freed_memory_is_lent_again_and_to_one_only() -> None:
    first = buffers.empty(LARGE, torch.float32, CPU)
    address = first.data_ptr()
    other = buffers.empty(LARGE, torch.float32, CPU)
    assert other.data_ptr() != address
    del first
    again = buffers.empty(LARGE, torch.float32, CPU)
    assert again.data_ptr() == address
    assert buffers.empty(LARGE, torch.float32, CPU).data_ptr() not in (address, other.data_ptr())


def test_a_view_of_it_is_enough_to_hold_it() -> None:
    tensor = buffers.empty(LARGE, torch.float32, CPU)
    part = tensor[1, 5:].detach().view(-1)
    del tensor
    assert not waiting()
    del part
    assert waiting() == [(LARGE, torch.float32)]


def test_a_graph_is_enough_to_hold_it() -> None:
    tensor = buffers.empty(LARGE, torch.float32, CPU).zero_()
    factor = torch.ones((), requires_grad=True)
    product = tensor * factor
    del tensor
    assert not waiting()
    del product
    assert len(waiting()) == 1


def test_another_size_frees_the_idle_buffers() -> None:
    del_me = buffers.empty(LARGE, torch.float32, CPU)
    del del_me
    assert len(waiting()) == 1
    buffer = buffers.empty(LARGE, torch.float64, CPU)
    assert not waiting() and buffer is not None


def test_a_full_garbage_collection_gives_everything_back() -> None:
    del_me = buffers.empty(LARGE, torch.float32, CPU)
    del del_me
    gc.collect(1)
    assert len(waiting()) == 1
    gc.collect()
    assert not waiting()


def test_small_tensors_and_other_devices_are_left_to_torch() -> None:
    small = buffers.empty((3, 4), torch.float32, CPU)
    elsewhere = buffers.empty(LARGE, torch.float32, torch.device("meta"))
    assert elsewhere.device.type == "meta"
    del small, elsewhere
    assert not waiting()


def test_spikes_of_one_pass_survive_the_next() -> None:
    """A later pass does not write to arrays that a user holds."""
    from snnbench.kernels import lif

    currents = torch.randn(2, 64, 16, 1024)
    first = lif(currents[0], beta=0.9, threshold=1.0, kernel="torch")
    copy = first.clone()
    second = lif(currents[1], beta=0.9, threshold=1.0, kernel="torch")
    assert torch.equal(first, copy) and not torch.equal(first, second)


def test_spikes_may_be_changed_in_place() -> None:
    from snnbench.kernels import lif

    currents = torch.randn(64, 16, 1024).requires_grad_()
    spikes = lif(currents, beta=0.9, threshold=1.0)
    (once,) = torch.autograd.grad(spikes.sum(), currents, retain_graph=True)
    spikes.mul_(2)
    (twice,) = torch.autograd.grad(spikes.sum(), currents)
    assert torch.allclose(twice, 2 * once)


def test_pool_is_opt_in() -> None:
    code = "import gc; before = list(gc.callbacks); import snnbench.kernels; assert gc.callbacks == before"
    subprocess.run([sys.executable, "-c", code], check=True)
    held = buffers.empty(LARGE, torch.float32, CPU)
    buffers.reuse_memory(False)
    del held
    assert not waiting() and buffers._on_collection not in gc.callbacks
    tensor = buffers.empty(LARGE, torch.float32, CPU)
    del tensor
    assert not waiting()
    buffers.reuse_memory()
    buffers.reuse_memory()
    assert gc.callbacks.count(buffers._on_collection) == 1
