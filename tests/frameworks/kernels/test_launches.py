"""Tests of what a pass of the kernel `cuda` asks of the host, counted without a GPU."""

import torch

from benchmarks import launches
from snnbench.kernels import lif, linear_lif

MATRIX = (launches.SHAPE[2], launches.SHAPE[2])


def launched(function: object, *shapes: tuple[int, ...]) -> tuple[int, list[str]]:
    """How often a training pass launches the kernel, and the names of torch's operators that it launches."""
    leaves = [torch.rand(shape, requires_grad=True) for shape in shapes]
    cotangent = torch.rand(launches.SHAPE)

    def train() -> None:
        spikes = function(*leaves, beta=0.9, threshold=1.0, kernel="cuda")  # type: ignore[operator]
        torch.autograd.grad(spikes, leaves, cotangent)

    with launches.counted() as counted:
        operators, _ = launches.noted(train)
    return counted.calls, [launches.name_of(call[0]) for call in operators]


def test_layer_launches_the_kernel_and_three_products() -> None:
    kernels, operators = launched(linear_lif, launches.SHAPE, MATRIX, MATRIX[:1])
    assert kernels == 2
    assert operators == ["addmm", "new_zeros", "new_zeros", "mm", "mm", "sum"]


def test_neuron_alone_launches_the_kernel_and_clears_two_states() -> None:
    assert launched(lif, launches.SHAPE) == (2, ["new_zeros", "new_zeros"])
