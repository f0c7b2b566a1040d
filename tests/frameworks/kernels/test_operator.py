"""Tests of `lif` and `linear_lif` as operators of torch: autograd, torch.compile, vmap, autocast, and learning."""

from typing import Any

import pytest
import torch

from snnbench.kernels import KEEPS, Unsupported, lif, linear_lif, pipeline, stretches
from snnbench.kernels.passes import Wanted
from tests.frameworks.kernels.test_kernels import EXACT, problem, stretches_of


def test_unneeded_gradients_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {name: one.float() for name, one in problem(12, 3, 5, 7).items()}
    wanted: list[Any] = []
    real = pipeline.backward

    def spy(*arguments: Any) -> Any:
        wanted.append(arguments[-1])
        return real(*arguments)

    monkeypatch.setattr(pipeline, "backward", spy)
    weight = given["weight"].requires_grad_()
    spikes = linear_lif(given["inputs"], weight, given["bias"], beta=0.9, threshold=1.0, kernel="torch")
    torch.autograd.grad(spikes, weight, given["cotangent"])
    assert wanted == [Wanted(False, True, False, False, False)]


def test_without_gradients_nothing_is_kept() -> None:
    sizes = []
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            current = torch.randn(6, 2, 5).requires_grad_()
            spikes = lif(current, beta=0.9, threshold=1.0, kernel="torch")
            sizes.append(spikes.requires_grad)
    assert sizes == [True, False]
    shape = (6, 2, 5)
    assert stretches.kept_shape(torch.device("cpu"), "torch", shape, False, "", torch.float32)[0] == (0,)


@pytest.mark.parametrize("kernel", ["torch", "cpu"])
def test_a_sequence_in_pieces_is_the_sequence(kernel: str) -> None:
    current = torch.randn(50, 3, 20)
    whole = lif(current, beta=0.9, threshold=1.0, kernel=kernel)
    first, potential = lif(current[:17], beta=0.9, threshold=1.0, kernel=kernel, return_potential=True)
    second = lif(current[17:], beta=0.9, threshold=1.0, kernel=kernel, potential=potential)
    assert torch.equal(torch.cat([first, second]), whole)


@pytest.mark.parametrize("kernel", ["torch", "cpu"])
def test_arrays_that_are_not_contiguous(kernel: str) -> None:
    given = {name: one.float() for name, one in problem(20, 6, 10, 14).items()}
    options = {"beta": 0.9, "threshold": 1.0, "kernel": kernel}
    results = []
    for awkward in (False, True):
        inputs, weight, cotangent = (given[name].clone() for name in ("inputs", "weight", "cotangent"))
        if awkward:
            inputs = inputs.transpose(0, 1).contiguous().transpose(0, 1)
            weight = weight.t().contiguous().t()
            cotangent = torch.stack([cotangent, cotangent], -1)[..., 0]
            assert not (inputs.is_contiguous() or weight.is_contiguous() or cotangent.is_contiguous())
        leaves = inputs.requires_grad_(), weight.requires_grad_()
        spikes = linear_lif(*leaves, **options)
        results.append([spikes.detach(), *torch.autograd.grad(spikes, leaves, cotangent)])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
    leaf = given["weight"].clone().requires_grad_()
    linear_lif(given["inputs"], leaf, **options).sum().backward()  # an expanded gradient has strides of 0
    assert leaf.grad is not None and bool(leaf.grad.any())


@pytest.mark.parametrize(("kernel", "keep"), EXACT)
def test_gradients_can_be_taken_again_from_a_kept_graph(kernel: str, keep: str) -> None:
    given = {name: one.float() for name, one in problem(20, 3, 10, 14).items()}
    weight = given["weight"].requires_grad_()
    spikes = linear_lif(given["inputs"], weight, beta=0.9, threshold=1.0, kernel=kernel, keep=keep)
    twice = [torch.autograd.grad(spikes, weight, given["cotangent"], retain_graph=True)[0] for _ in range(2)]
    assert torch.equal(*twice)


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("kernel", ["torch", "cpu"])
def test_operator_passes_torchs_opcheck(kernel: str, keep: str) -> None:
    """torch.library's own check: schema, fake results, autograd registration, under dynamic shapes too."""
    given = {name: one.float() for name, one in problem(9, 2, 5, 6).items()}
    arguments = (
        given["inputs"].requires_grad_(),
        given["weight"].requires_grad_(),
        given["bias"].requires_grad_(),
        given["potential"],
        torch.tensor(0.9).requires_grad_(),
        None,
        *(0.9, 1.0, "subtract", False, "atan", 2.0, keep, kernel),
    )
    torch.library.opcheck(torch.ops.snnbench.lif.default, arguments)


@pytest.mark.parametrize("alone", [False, True], ids=["layer", "neuron"])
def test_torch_compile_sees_one_graph(alone: bool) -> None:
    given = {name: one.float() for name, one in problem(9, 2, 5, 6).items()}
    weight = given["weight"].requires_grad_()

    def network(inputs: torch.Tensor) -> torch.Tensor:
        if alone:
            return lif(inputs @ weight.t() + given["bias"], beta=0.9, threshold=1.0) * 2
        return linear_lif(inputs, weight, given["bias"], beta=0.9, threshold=1.0) * 2

    compiled = torch.compile(network, backend="aot_eager", fullgraph=True)
    results = []
    for run in (network, compiled):
        spikes = run(given["inputs"])
        results.append([spikes.detach(), *torch.autograd.grad(spikes, weight, given["cotangent"])])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_a_network_learns_with_it() -> None:
    """Twenty steps of gradient descent on a rate, with beta and threshold learned too, bring the loss down by half."""
    torch.manual_seed(0)
    inputs = (torch.rand(30, 8, 12) < 0.3).float()
    weight = (0.2 * torch.randn(6, 12)).requires_grad_()
    beta, threshold = torch.tensor(0.8).requires_grad_(), torch.tensor(1.0).requires_grad_()
    optimiser = torch.optim.Adam([weight, beta, threshold], lr=0.05)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        rate = linear_lif(inputs, weight, beta=beta, threshold=threshold).mean((0, 1))
        loss = ((rate - 0.4) ** 2).mean()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 2 and beta.grad is not None and bool(threshold.grad)


def layer_of(weight: torch.Tensor) -> torch.Tensor:
    return linear_lif(torch.ones(5, 3, 4), weight, beta=0.9, threshold=1.0)


@pytest.mark.parametrize("kernel", ["torch", "cpu"])
def test_vmap_without_gradients_is_the_loop(kernel: str) -> None:
    weights, currents = torch.randn(4, 6, 3), torch.randn(4, 5, 2, 3)
    options = {"beta": 0.9, "threshold": 1.0, "kernel": kernel}
    for function, slices in (
        (lambda weight: linear_lif(currents[0], weight, **options), weights),
        (lambda current: lif(current, **options), currents),
    ):
        assert torch.equal(torch.vmap(function)(slices), torch.stack([function(part) for part in slices]))


@pytest.mark.parametrize(
    "derivative",
    [
        pytest.param(lambda weights: torch.vmap(layer_of)(weights.requires_grad_()), id="of vmap"),
        pytest.param(torch.vmap(torch.func.grad(lambda weight: layer_of(weight).sum())), id="in vmap"),
        pytest.param(lambda weights: torch.func.grad(lambda w: layer_of(w).sum())(weights[0]), id="in torch.func"),
        pytest.param(lambda weights: torch.func.jacrev(layer_of)(weights[0]), id="a Jacobian"),
    ],
)
def test_derivative_in_a_transform_is_refused(derivative: Any) -> None:
    with pytest.raises(Unsupported, match="loop over the slices"):
        derivative(torch.ones(2, 6, 4))


@pytest.mark.parametrize("rows", [1024, 12])
def test_autocast_rounds_no_gradient(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stretches_of(rows, monkeypatch)
    given = {name: one.float() for name, one in problem(20, 3, 10, 14).items()}
    weight, gradients = given["weight"].requires_grad_(), []
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            spikes = linear_lif(given["inputs"], weight, beta=0.9, threshold=1.0)
            gradients.append(torch.autograd.grad(spikes, weight, given["cotangent"])[0])
    assert torch.equal(*gradients)
