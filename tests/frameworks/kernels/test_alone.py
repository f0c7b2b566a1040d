"""Tests of the neuron alone that keeps no step: every bit is that of the pipeline that keeps every step."""

from typing import Any

import pytest
import torch

from snnbench.kernels import Neuron, alone, lif, lif_cpu, linear_lif
from snnbench.kernels.passes import Layer, Wanted
from tests.oracle import FEW_NEURONS, FORMATS, identifier

NEURON = Neuron(0.9, 1.0)
STRETCH = lif_cpu.STRETCH
LENGTHS = (1, STRETCH - 1, STRETCH, STRETCH + 1, 2 * STRETCH, 2 * STRETCH + 1)
COLUMNS = (1, 511, 512, 513, 1025)


def results(keep: str, neuron: Neuron, steps: int, columns: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Spikes, the last potential, and the gradients of currents, bias, potential, beta and threshold."""
    random = torch.Generator().manual_seed(steps * columns)

    def leaf(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random).to(dtype).requires_grad_()

    current, bias, start = leaf(steps, 1, columns), leaf(columns), leaf(1, columns)
    learned = [torch.tensor(value, dtype=dtype).requires_grad_() for value in (neuron.beta, neuron.threshold)]
    kind = {name: getattr(neuron, name) for name in Neuron.__slots__[2:]}
    options: dict[str, Any] = {**kind, "keep": keep, "kernel": "cpu", "return_potential": True}
    spikes, last = linear_lif(current, None, bias, beta=learned[0], threshold=learned[1], potential=start, **options)
    cotangents = leaf(*spikes.shape).detach(), torch.randn(last.shape, generator=random, dtype=last.dtype)
    leaves = (current, bias, start, *learned)
    gradients = torch.autograd.grad((spikes, last), leaves, cotangents)
    return [spikes.detach(), last.detach(), *gradients]


def assert_same_bits(neuron: Neuron, steps: int, columns: int, dtype: torch.dtype = torch.float32) -> None:
    pairs = zip(*(results(keep, neuron, steps, columns, dtype) for keep in ("potential", "nothing")), strict=True)
    for number, (expected, computed) in enumerate(pairs):
        if number in (3, 5, 6):  # sums over the columns or the steps, in the order of the stretches
            assert torch.allclose(expected, computed, rtol=1e-4, atol=1e-3), number
        else:
            assert torch.equal(expected, computed), number


@pytest.mark.parametrize("neuron", FEW_NEURONS, ids=identifier)
def test_every_neuron_has_the_same_bits(neuron: Neuron) -> None:
    assert_same_bits(neuron, 2 * STRETCH + 5, 70)


@pytest.mark.parametrize("steps", LENGTHS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_any_length_has_the_same_bits(steps: int, columns: int) -> None:
    assert_same_bits(NEURON, steps, columns)


@pytest.mark.parametrize("dtype", FORMATS)
def test_every_format_has_the_same_bits(dtype: torch.dtype) -> None:
    assert_same_bits(NEURON, STRETCH + 3, 40, dtype)


@pytest.mark.parametrize(("steps", "columns"), [(0, 5), (5, 0)])
def test_an_empty_problem_has_empty_results(steps: int, columns: int) -> None:
    spikes, last, *gradients = results("nothing", NEURON, steps, columns, torch.float32)
    assert spikes.shape == (steps, 1, columns) and last.shape == (1, columns)
    assert not any(bool(gradient.any()) for gradient in (gradients[0], gradients[1], gradients[3]))


def test_zeros_stand_in_for_arrays_that_are_absent() -> None:
    current = torch.randn(STRETCH + 8, 2, 30).requires_grad_()
    cotangent = torch.randn(current.shape)
    start = torch.zeros(2, 30).requires_grad_()
    spikes = lif(current, beta=0.9, threshold=1.0)
    full, last = lif(current, beta=0.9, threshold=1.0, potential=start, return_potential=True)
    expected = torch.autograd.grad((full, last), current, (cotangent, torch.zeros_like(last)))[0]
    assert torch.equal(spikes, full)
    assert torch.equal(torch.autograd.grad(spikes, current, cotangent)[0], expected)


def test_one_state_in_a_stretch_is_kept() -> None:
    assert [alone.states_shape("cpu", (steps, 2, 3))[0] for steps in (0, 1, STRETCH, STRETCH + 1)] == [0, 0, 0, 1]
    current = torch.randn(4 * STRETCH, 1, 1000).requires_grad_()
    held: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: held.append(tensor.numel()) or tensor, lambda x: x):  # type: ignore[func-returns-value]
        lif(current, beta=0.9, threshold=1.0)
    assert sorted(held) == [3 * 1000, current.numel()]


def test_columns_of_wider_tensors_have_the_same_bits() -> None:
    wide, cotangent = torch.randn(2, 2 * STRETCH + 5, 1, 1100).unbind(0)
    start = torch.randn(1, 700)
    block, wanted = slice(7, 707), Wanted(True, False, False, False)
    columns = wide[:, :, block]
    whole, part = (Layer(x, None, None, start, NEURON, "nothing", "cpu") for x in (columns.contiguous(), columns))
    spikes, gradient = torch.full_like(wide, 7.0), torch.full_like(wide, 7.0)
    expected, last, states = alone.forward(whole)
    _, other_last, other_states = alone.forward(part, spikes[:, :, block])
    assert torch.equal(expected, spikes[:, :, block])
    assert torch.equal(last, other_last) and torch.equal(states, other_states)
    gradients = alone.backward(whole, cotangent[:, :, block].contiguous(), last, states, wanted)
    alone.backward(part, cotangent[:, :, block], last, states, wanted, gradient[:, :, block])
    assert gradients.input is not None and torch.equal(gradients.input, gradient[:, :, block])
    for written in (spikes, gradient):
        written[:, :, block] = 7.0
        assert torch.equal(written, torch.full_like(wide, 7.0)), "other columns"


def test_rows_that_are_not_equally_far_apart_are_refused() -> None:
    wide, spikes = torch.randn(3, 8), torch.zeros(3, 5)
    with pytest.raises(ValueError, match=r"strides \(8, 1\) and \(5, 1\)"):
        lif_cpu.forward_alone(wide[:, :5], None, spikes, None, None, NEURON)
    with pytest.raises(ValueError, match=r"strides \(1, 3\)"):
        lif_cpu.forward_alone(torch.randn(5, 3).t(), None, spikes, None, None, NEURON)
