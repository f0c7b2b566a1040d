"""Tests of the two ways into the layer: autograd's function and the operator give the same bits."""

from typing import Any

import pytest
import torch

from snnbench.kernels import KEEPS, Neuron, eager, linear_lif
from tests.frameworks.kernels.test_kernels import by_linear_lif, problem
from tests.oracle import FEW_NEURONS, identifier


def both_ways(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> None:
    """Spikes and every gradient of `by_linear_lif`, by the function and by the operator, are equal."""
    spikes, gradients = by_linear_lif(*arguments, **options)
    with monkeypatch.context() as patched:
        patched.setattr(eager, "serves", lambda *_: False)
        other_spikes, others = by_linear_lif(*arguments, **options)
    assert torch.equal(spikes, other_spikes)
    assert all(torch.equal(one, other) for one, other in zip(gradients, others, strict=True))


@pytest.mark.parametrize("keep", ("auto", *KEEPS))
@pytest.mark.parametrize("kernel", ["torch", "cpu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_function_has_the_operators_bits(
    dtype: torch.dtype, kernel: str, keep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both_ways(monkeypatch, problem(23, 3, 11, 17), Neuron(0.9, 1.0), dtype, kernel=kernel, keep=keep)


@pytest.mark.parametrize("neuron", FEW_NEURONS, ids=identifier)
def test_function_has_the_operators_bits_for_every_neuron(neuron: Neuron, monkeypatch: pytest.MonkeyPatch) -> None:
    both_ways(monkeypatch, problem(23, 3, 11, 17), neuron, torch.float32, kernel="cpu")


def test_plain_tensors_take_the_function() -> None:
    assert eager.serves(torch.zeros(2), torch.nn.Parameter(torch.zeros(2)), None)


def test_subclasses_and_meta_tensors_take_the_operator() -> None:
    class Tagged(torch.Tensor):
        """A tensor of another type."""

    assert not eager.serves(torch.zeros(2).as_subclass(Tagged))
    assert not eager.serves(torch.zeros(2, device="meta"))


def test_transforms_and_modes_take_the_operator() -> None:
    seen: list[bool] = []

    def look(tensor: torch.Tensor) -> torch.Tensor:
        seen.append(eager.serves(torch.zeros(2)))
        return tensor

    torch.vmap(look)(torch.zeros(2, 2))
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False):
        look(torch.zeros(2))
    assert seen == [False, False]


def test_a_traced_call_is_the_operator_in_the_graph() -> None:
    def layer(current: torch.Tensor) -> torch.Tensor:
        return linear_lif(current, None, beta=0.9, threshold=1.0)

    current = torch.randn(5, 2, 3)
    with pytest.deprecated_call():
        traced = torch.jit.trace(layer, current)
    assert "snnbench::" in str(traced.graph)
    assert torch.equal(traced(-current), layer(-current))


def test_meta_tensors_give_shapes() -> None:
    spikes = linear_lif(torch.zeros(5, 2, 3, device="meta"), torch.zeros(4, 3, device="meta"), beta=0.9, threshold=1.0)
    assert spikes.shape == (5, 2, 4) and spikes.device.type == "meta"


def test_a_second_derivative_is_refused() -> None:
    current = torch.randn(5, 2, 3).requires_grad_()
    spikes = linear_lif(current, None, beta=0.9, threshold=1.0)
    (gradient,) = torch.autograd.grad(spikes.sum(), current, create_graph=True)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        gradient.sum().backward()


def test_a_learned_threshold_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold 0"):
        linear_lif(torch.zeros(3, 1, 2), None, beta=0.9, threshold=torch.zeros((), requires_grad=True))


def test_each_call_is_checked() -> None:
    inputs, weight = torch.zeros(4, 2, 3), torch.zeros(5, 3)
    assert linear_lif(inputs, weight, beta=0.9, threshold=1.0).shape == (4, 2, 5)
    for _ in range(2):
        with pytest.raises(ValueError, match="weight has the shape"):
            linear_lif(inputs, weight.T, beta=0.9, threshold=1.0)
        with pytest.raises(ValueError, match="one format"):
            linear_lif(inputs, weight.double(), beta=0.9, threshold=1.0)
        with pytest.raises(ValueError, match="reset"):
            linear_lif(inputs, weight, beta=0.9, threshold=1.0, reset="none")  # type: ignore[arg-type]
