"""Tests of the gradients of `lif` and `linear_lif`: neurons, shapes and formats, against plain loops in float64.

Each surrogate runs with one reset here, and with every reset in tests/release/test_every_kernel.py.
"""

from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snnbench.cases.case import Surrogate
from snnbench.kernels import KEEPS, Neuron, lif, lif_ref, linear_cpu, linear_lif, stretches
from tests.oracle import FEW_NEURONS, distance, identifier

EXACT = [(kernel, keep) for kernel in ("torch", "cpu") for keep in ("potential", "nothing")]


def problem(steps: int, batch: int, entering: int, neurons: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Input, weight, bias, start potentials, and the cotangents of spikes and last potentials, in float64."""
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    return {
        "inputs": (torch.rand(steps, batch, entering, generator=random) < 0.3).double(),
        "weight": normal(neurons, entering) * 0.9 / max(1.0, (0.3 * entering) ** 0.5),
        "bias": 0.1 * normal(neurons),
        "potential": 0.3 * normal(batch, neurons),
        "cotangent": normal(steps, batch, neurons),
        "carried": normal(batch, neurons),
    }


NAMES = ("inputs", "weight", "bias", "potential", "beta", "threshold")


def expected(given: dict[str, torch.Tensor], neuron: Neuron) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Spikes and all gradients, by the plain loop in float64."""
    leaves = [given[name].clone().requires_grad_() for name in NAMES[:4]]
    learned = [torch.tensor(value, dtype=torch.float64).requires_grad_() for value in (neuron.beta, neuron.threshold)]
    inputs, weight, bias, potential = leaves
    learning = Neuron(*learned, *(getattr(neuron, name) for name in Neuron.__slots__[2:]))
    spikes, last = lif_ref.lif(inputs @ weight.t() + bias, learning, potential)
    loss = (spikes * given["cotangent"]).sum() + (last * given["carried"]).sum()
    return spikes.detach(), list(torch.autograd.grad(loss, leaves + learned))


def by_linear_lif(
    given: dict[str, torch.Tensor], neuron: Neuron, dtype: torch.dtype, **options: Any
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The same by `linear_lif`."""
    leaves = [given[name].to(dtype).requires_grad_() for name in NAMES[:4]]
    learned = [torch.tensor([value], dtype=dtype).requires_grad_() for value in (neuron.beta, neuron.threshold)]
    kind = {name: getattr(neuron, name) for name in Neuron.__slots__[2:]}
    spikes, last = linear_lif(
        *leaves[:3],
        potential=leaves[3],
        beta=learned[0],
        threshold=learned[1],
        return_potential=True,
        **kind,
        **options,
    )
    loss = (spikes * given["cotangent"].to(dtype)).sum() + (last * given["carried"].to(dtype)).sum()
    return spikes.detach(), list(torch.autograd.grad(loss, leaves + learned))


def stretches_of(rows: int, patch: pytest.MonkeyPatch) -> None:
    """Let a stretch have so many rows of products, and plan every pass anew."""
    for name in ("CPU_ROWS", "LEAST_ROWS"):
        patch.setattr(stretches, name, rows)
    patch.setattr(linear_cpu, "_plans", linear_cpu._plans.__wrapped__)


def check_every_gradient(neuron: Neuron, kernel: str, keep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spikes and all gradients match the plain loop's, in float64 and in float32."""
    stretches_of(21, monkeypatch)  # seven steps in a stretch, the last one shorter
    given = problem(23, 3, 11, 17)
    spikes, gradients = expected(given, neuron)
    fired, got = by_linear_lif(given, neuron, torch.float64, kernel=kernel, keep=keep)
    assert torch.equal(fired, spikes) and 0.1 < float(spikes.mean()) < 0.9
    for name, gradient, other in zip(NAMES, got, gradients, strict=True):
        assert distance(gradient.reshape(other.shape), other) < 1e-12, name
    fired, got = by_linear_lif(given, neuron, torch.float32, kernel=kernel, keep=keep)
    assert torch.equal(fired.double(), spikes)
    for name, gradient, other in zip(NAMES, got, gradients, strict=True):
        assert distance(gradient.reshape(other.shape), other) < 2e-5, name  # single numbers too, with cancellation


@pytest.mark.parametrize(("kernel", "keep"), EXACT)
@pytest.mark.parametrize("neuron", FEW_NEURONS, ids=identifier)
def test_every_gradient(neuron: Neuron, kernel: str, keep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_every_gradient(neuron, kernel, keep, monkeypatch)


PROBLEMS = st.fixed_dictionaries(
    {
        "steps": st.integers(0, 40),
        "batch": st.integers(0, 5),
        "entering": st.integers(1, 9),
        "neurons": st.integers(0, 70),
        "kernel": st.sampled_from(("torch", "cpu")),
        "keep": st.sampled_from(("potential", "nothing")),
        "rows": st.integers(1, 60),
        "beta": st.sampled_from((0.0, 0.5, 0.9, 1.0)),
        "threshold": st.sampled_from((0.25, 0.8, 1.0)),
        "seed": st.integers(0, 99),
    }
)
"""Arguments of `check_shape`."""


def check_shape(
    neuron: Neuron,
    *,
    steps: int,
    batch: int,
    entering: int,
    neurons: int,
    kernel: str,
    keep: str,
    rows: int,
    beta: float,
    threshold: float,
    seed: int,
) -> None:
    """Spikes and all gradients match the plain loop's in float64, in stretches of so many rows."""
    given = problem(steps, batch, entering, neurons, seed)
    kind = Neuron(beta, threshold, *(getattr(neuron, name) for name in Neuron.__slots__[2:]))
    with pytest.MonkeyPatch.context() as patch:
        stretches_of(rows, patch)
        fired, got = by_linear_lif(given, kind, torch.float64, kernel=kernel, keep=keep)
    if not steps:
        assert fired.shape == (0, batch, neurons) and torch.equal(got[3], given["carried"])
        assert not any(bool(gradient.any()) for gradient in (*got[:3], *got[4:]))
        return
    spikes, gradients = expected(given, kind)
    assert torch.equal(fired, spikes)
    for name, gradient, other in zip(NAMES, got, gradients, strict=True):
        assert torch.allclose(gradient.reshape(other.shape), other, rtol=1e-9, atol=1e-9), name


@settings(deadline=None, max_examples=150, derandomize=True)
@given(drawn=PROBLEMS, neuron=st.sampled_from(FEW_NEURONS))
def test_any_shape_and_any_stretch(drawn: dict[str, Any], neuron: Neuron) -> None:
    check_shape(neuron, **drawn)


@pytest.mark.parametrize("kernel", ["torch", "cpu"])
@pytest.mark.parametrize("surrogate", get_args(Surrogate))
def test_16_bits_kept_have_all_spikes_and_nearly_the_gradients(surrogate: str, kernel: str) -> None:
    neuron = Neuron(0.9, 1.0, "subtract", False, surrogate, 1.0)
    given = problem(30, 4, 33, 50)
    spikes, gradients = expected(given, neuron)
    fired, got = by_linear_lif(given, neuron, torch.float32, kernel=kernel, keep="bfloat16")
    assert torch.equal(fired.double(), spikes)
    error = distance(got[1], gradients[1])
    assert error < (5e-3 if surrogate in ("fast_sigmoid", "sigmoid", "atan") else 0.3)  # the others jump, or bend
    if surrogate in ("fast_sigmoid", "sigmoid", "atan", "triangle"):
        assert error > 1e-5, "16 bits cannot be that exact: were they kept at all?"


@pytest.mark.parametrize("kernel", ["torch", "cpu"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("keep", KEEPS)
def test_16_bit_storage_with_a_float32_state(dtype: torch.dtype, keep: str, kernel: str) -> None:
    given = problem(30, 4, 33, 50)
    current = (given["inputs"] @ given["weight"].t()).to(dtype)
    neuron = Neuron(0.9, 1.0)
    leaf = current.clone().requires_grad_()
    fired, last = lif(leaf, beta=0.9, threshold=1.0, keep=keep, kernel=kernel, return_potential=True)
    assert fired.dtype == dtype and last.dtype == torch.float32
    exact = current.double().requires_grad_()
    spikes, _ = lif_ref.lif(exact, neuron)
    assert torch.equal(fired.double(), spikes.detach())
    (by_current,) = torch.autograd.grad(fired, leaf, given["cotangent"].to(dtype))
    (other,) = torch.autograd.grad(spikes, exact, given["cotangent"].to(dtype).double())
    saved_error = 5e-3 if keep == "bfloat16" else 0.0  # the kept format may have fewer digits than the storage format
    assert distance(by_current, other) < max(saved_error, torch.finfo(dtype).eps)
    weight = given["weight"].to(dtype).requires_grad_()
    spikes = linear_lif(given["inputs"].to(dtype), weight, beta=0.9, threshold=1.0, keep=keep, kernel=kernel)
    (by_weight,) = torch.autograd.grad(spikes, weight, given["cotangent"].to(dtype))
    assert by_weight.dtype == dtype and bool(by_weight.isfinite().all())


@pytest.mark.parametrize("kernel", ["torch", "cpu"])
@pytest.mark.parametrize("surrogate", ["fast_sigmoid", "sigmoid", "atan"])
def test_gradients_are_the_slopes_of_a_smooth_neuron(surrogate: str, kernel: str) -> None:
    """torch.autograd.gradcheck by finite differences. No neuron fires, so dv/dx and dL/dbeta are smooth."""
    random = torch.Generator().manual_seed(1)
    current = 0.05 * torch.randn(6, 2, 4, generator=random, dtype=torch.float64)
    leaves = (current.requires_grad_(), torch.zeros(2, 4, dtype=torch.float64).requires_grad_())
    beta = torch.tensor(0.8, dtype=torch.float64).requires_grad_()

    def last(x: torch.Tensor, start: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
        spikes, potential = lif(
            x,
            beta=decay,
            threshold=1.0,
            potential=start,
            surrogate=surrogate,
            detach_reset=True,
            kernel=kernel,
            return_potential=True,
        )
        assert not spikes.any()
        return potential

    assert torch.autograd.gradcheck(last, (*leaves, beta), eps=1e-6, atol=1e-8)
