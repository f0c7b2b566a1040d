"""Tests of the kernel for recurrent layers and synaptic currents against a loop over time in float64."""

import pytest
import torch
from torch import Tensor

from snnbench.adapter.refusal import Unsupported
from snnbench.cases.surrogate import FORMULAS
from snnbench.kernels import recurrent_lif


class Spike(torch.autograd.Function):
    """A step with the fast sigmoid's derivative of slope 2."""

    @staticmethod
    def forward(ctx, distance):
        ctx.save_for_backward(distance)
        return (distance >= 0).to(distance.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (distance,) = ctx.saved_tensors
        return gradient * FORMULAS["fast_sigmoid"](distance, 2.0, 1.0, torch)


def loop(current: Tensor, own: Tensor | None, alpha: float, reset: str, detach: bool) -> Tensor:
    """The neuron as one writes it."""
    v = i = s = torch.zeros_like(current[0])
    spikes = []
    for x in current.unbind(0):
        i = alpha * i + (x if own is None else x + s @ own.T)
        u = 0.9 * v + i
        s = Spike.apply(u - 1.0)
        through = s.detach() if detach else s
        v = u - through if reset == "subtract" else u * (1 - through)
        spikes.append(s)
    return torch.stack(spikes)


@pytest.mark.parametrize("neurons", [3, 37, 64])
@pytest.mark.parametrize("alpha", [0.0, 0.8])
@pytest.mark.parametrize(
    ("reset", "detach"), [("subtract", False), ("subtract", True), ("zero", False), ("zero", True)]
)
@pytest.mark.parametrize("is_recurrent", [True, False])
@pytest.mark.parametrize("kernel", ["cpu", "torch"])
def test_spikes_and_gradients_are_those_of_a_loop(
    neurons: int, alpha: float, reset: str, detach: bool, is_recurrent: bool, kernel: str
) -> None:
    """21 samples: threads share whole tiles of rows, and single rows are left."""
    random = torch.Generator().manual_seed(1)
    shape = (12, 21, neurons)
    current = torch.randn(shape, generator=random, dtype=torch.float64).requires_grad_()
    own = (
        torch.randn(neurons, neurons, generator=random, dtype=torch.float64).requires_grad_() if is_recurrent else None
    )
    cotangent = torch.randn(shape, generator=random, dtype=torch.float64)
    wanted = [current] if own is None else [current, own]
    settings = {"beta": 0.9, "threshold": 1.0, "reset": reset, "detach_reset": detach, "slope": 2.0, "kernel": kernel}
    spikes = recurrent_lif(current, own, alpha=alpha, **settings)
    expected = loop(current, own, alpha, reset, detach)
    assert torch.equal(spikes, expected) and 0.05 < spikes.mean() < 0.9
    for got, right in zip(
        torch.autograd.grad(spikes, wanted, cotangent), torch.autograd.grad(expected, wanted, cotangent), strict=True
    ):
        assert torch.allclose(got, right, rtol=1e-10, atol=1e-12)


def test_backward_pass_runs_again_and_refuses_a_second_derivative() -> None:
    current, own = torch.randn(5, 2, 4).requires_grad_(), torch.randn(4, 4).requires_grad_()
    spikes = recurrent_lif(current, own, beta=0.9, threshold=0.5)
    first = torch.autograd.grad(spikes.sum(), [current, own], retain_graph=True)
    weight = torch.ones_like(spikes).requires_grad_()
    second = torch.autograd.grad((weight * spikes).sum(), [current, own], create_graph=True)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        second[0].sum().backward()


@pytest.mark.parametrize(
    ("current", "own", "error", "message"),
    [
        (torch.zeros(5, 4), None, ValueError, "shape \\[5, 4\\]: expected \\[T, B, N\\]"),
        (torch.zeros(5, 2, 4), torch.zeros(4, 3), ValueError, "shape \\[4, 3\\]: expected \\[N, N\\]"),
        (torch.zeros(5, 2, 4, dtype=torch.float16), None, Unsupported, "has float32 and float64"),
    ],
)
def test_other_arguments_are_refused(current: Tensor, own: Tensor | None, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        recurrent_lif(current, own, beta=0.9, threshold=1.0)
