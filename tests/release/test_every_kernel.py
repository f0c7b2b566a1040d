"""The C kernel and torch's own operations with every reset and every surrogate, held to the contract of all kernels.

tests/frameworks/kernels runs the same checks on some of them. A kernel is compiled for each pair of formats, so each
kind of neuron has three pairs.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from snnbench.kernels import lif_cpu, lif_torch
from snnbench.kernels.neuron import Neuron
from tests import contract
from tests.contract import Kernels
from tests.frameworks.kernels.test_kernels import EXACT, PROBLEMS, check_every_gradient, check_shape
from tests.oracle import NEURONS, identifier

MODULES = {"cpu": lif_cpu, "torch": lif_torch}


@pytest.fixture(params=MODULES)
def kernels(request: pytest.FixtureRequest) -> Kernels:
    return Kernels(MODULES[request.param])


def test_every_surrogate_and_reset_meets_every_pair() -> None:
    for kind in ({neuron.surrogate for neuron in NEURONS}, {(each.reset, each.detach_reset) for each in NEURONS}):
        for value in kind:
            same = [n for n in NEURONS if value in (n.surrogate, (n.reset, n.detach_reset))]
            assert {pair for neuron in same for pair in contract.some_pairs(neuron)} == set(contract.PAIRS)


@pytest.mark.parametrize("biased", [False, True], ids=["without-bias", "with-bias"])
@pytest.mark.parametrize("neuron", NEURONS, ids=identifier)
def test_forward_is_the_eager_loop_bit_for_bit(kernels: Kernels, neuron: Neuron, biased: bool) -> None:
    contract.check_forward(kernels, neuron, biased, contract.some_pairs(neuron))


@pytest.mark.parametrize("neuron", NEURONS, ids=identifier)
def test_backward_is_autograd_in_float64(kernels: Kernels, neuron: Neuron) -> None:
    contract.check_backward(kernels, neuron, contract.some_pairs(neuron))


@pytest.mark.parametrize("neuron", NEURONS, ids=identifier)
def test_both_passes_are_the_plain_loop(kernels: Kernels, neuron: Neuron) -> None:
    contract.check_both_passes(kernels, neuron)


@pytest.mark.parametrize("neuron", NEURONS, ids=identifier)
def test_float64_is_the_plain_loop_to_its_own_rounding(kernels: Kernels, neuron: Neuron) -> None:
    contract.check_float64(kernels.module, neuron)


@pytest.mark.parametrize(("kernel", "keep"), EXACT)
@pytest.mark.parametrize("neuron", NEURONS, ids=identifier)
def test_every_gradient_of_every_neuron(
    neuron: Neuron, kernel: str, keep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_every_gradient(neuron, kernel, keep, monkeypatch)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(drawn=PROBLEMS, neuron=st.sampled_from(NEURONS))
def test_any_shape_any_neuron_any_stretch(drawn: dict[str, Any], neuron: Neuron) -> None:
    check_shape(neuron, **drawn)
