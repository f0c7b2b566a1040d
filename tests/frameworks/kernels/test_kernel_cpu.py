"""The kernels that any machine runs, in C and in torch's own operations, held to the contract of all kernels.

Each surrogate runs with one reset here, and with every reset in tests/release/test_every_kernel.py. A kernel is
compiled for each pair of formats, so one kind of neuron has all pairs, and the others have three.
"""

import pytest
import torch

from snnbench.kernels import lif_cpu, lif_torch
from snnbench.kernels.neuron import Neuron
from tests import contract
from tests.contract import Kernels
from tests.oracle import FEW_NEURONS, FORMATS, NEURONS, identifier

MODULES = {"cpu": lif_cpu, "torch": lif_torch}
WIDE = {"one": (1, 1), "one step": (1, 37), "a block and a bit": (5, 1025), "two blocks": (3, 2048), "long": (700, 3)}


def pairs_of(neuron: Neuron) -> list[tuple[torch.dtype, torch.dtype]]:
    """The pairs of formats that a kind of neuron is checked with."""
    return contract.PAIRS if neuron is NEURONS[0] else contract.some_pairs(neuron)


@pytest.fixture(params=MODULES)
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return Kernels(MODULES[request.param])


@pytest.mark.parametrize("biased", [False, True], ids=["without-bias", "with-bias"])
@pytest.mark.parametrize("neuron", FEW_NEURONS, ids=identifier)
def test_forward_is_the_eager_loop_bit_for_bit(kernels: Kernels, neuron: Neuron, biased: bool) -> None:
    contract.check_forward(kernels, neuron, biased, pairs_of(neuron))


@pytest.mark.parametrize("neuron", FEW_NEURONS, ids=identifier)
def test_backward_is_autograd_in_float64(kernels: Kernels, neuron: Neuron) -> None:
    contract.check_backward(kernels, neuron, pairs_of(neuron))


@pytest.mark.parametrize("neuron", FEW_NEURONS, ids=identifier)
def test_both_passes_are_the_plain_loop(kernels: Kernels, neuron: Neuron) -> None:
    contract.check_both_passes(kernels, neuron)


@pytest.mark.parametrize("size", WIDE)
def test_any_size(kernels: Kernels, size: str) -> None:
    steps, columns = WIDE[size]
    contract.check_size(Kernels(kernels.module, "cpu", steps, columns), NEURONS[0])


@pytest.mark.parametrize("stored", FORMATS)
def test_in_place(kernels: Kernels, stored: torch.dtype) -> None:
    contract.check_in_place(kernels, stored)


def test_memory_outside_the_outputs_is_unchanged(kernels: Kernels) -> None:
    contract.check_nothing_else_is_written(kernels, NEURONS[0])


def test_the_threshold_itself_fires(kernels: Kernels) -> None:
    contract.check_threshold(kernels)


def test_minus_zero_did_not_fire(kernels: Kernels) -> None:
    contract.check_minus_zero(kernels)


@pytest.mark.parametrize(("steps", "columns"), [(0, 5), (5, 0), (0, 0)])
def test_empty_problem_changes_nothing(kernels: Kernels, steps: int, columns: int) -> None:
    contract.check_nothing_to_do(kernels, steps, columns)


def test_two_runs_agree_in_every_bit(kernels: Kernels) -> None:
    contract.check_runs_agree(kernels)


@pytest.mark.parametrize("neuron", FEW_NEURONS, ids=identifier)
def test_float64_is_the_plain_loop_to_its_own_rounding(kernels: Kernels, neuron: Neuron) -> None:
    contract.check_float64(kernels.module, neuron)


def test_threads_do_not_change_a_bit() -> None:
    kernels, threads = Kernels(lif_cpu, "cpu", 9, 5000), torch.get_num_threads()
    outputs = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            inputs = kernels.problem()
            outputs.append(kernels.backward(inputs, kernels.forward(inputs, NEURONS[0])[1], NEURONS[0]))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(outputs[0].current, outputs[1].current) and torch.equal(outputs[0].beta, outputs[1].beta)


def test_the_exponential_holds_over_its_whole_range() -> None:
    """The sigmoid's slope, relative to float64's, from its peak down to where float32 has no smaller normal numbers."""
    neuron = Neuron(0.9, 1.0, "subtract", True, "sigmoid", 1.0)
    distance = torch.linspace(-85, 85, 40001)[None]
    gradient, carried = torch.empty_like(distance), torch.zeros(distance.shape[1])
    lif_cpu.backward(torch.ones_like(distance), distance, carried, gradient, neuron)
    e = torch.exp(-distance.double().abs())
    expected = e / (1 + e) ** 2
    assert float(((gradient - expected) / expected).abs().max()) < 16 * 2.0**-24
