"""Tests of `lif` and `linear_lif` as a user calls them: gradients, formats, shapes, torch.compile, and refusals."""

import subprocess
import sys
from functools import partial
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from snnbench import kernels
from snnbench.kernels import KEEPS, Neuron, lif, lif_ref, linear_lif, pipeline
from snnbench.workloads.case import Surrogate
from tests.oracle import NEURONS, distance, identifier

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


@pytest.mark.parametrize(("kernel", "keep"), EXACT)
@pytest.mark.parametrize("neuron", NEURONS, ids=identifier)
def test_every_gradient_of_every_neuron(
    neuron: Neuron, kernel: str, keep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "CPU_ROWS", 21)  # seven steps in a stretch, the last one shorter
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


@settings(deadline=None, max_examples=150, derandomize=True)
@given(
    steps=st.integers(0, 40),
    batch=st.integers(0, 5),
    entering=st.integers(1, 9),
    neurons=st.integers(0, 70),
    neuron=st.sampled_from(NEURONS),
    kernel=st.sampled_from(("torch", "cpu")),
    keep=st.sampled_from(("potential", "nothing")),
    rows=st.integers(1, 60),
    beta=st.sampled_from((0.0, 0.5, 0.9, 1.0)),
    threshold=st.sampled_from((0.25, 0.8, 1.0)),
    seed=st.integers(0, 99),
)
def test_any_shape_any_neuron_any_stretch(
    steps: int,
    batch: int,
    entering: int,
    neurons: int,
    neuron: Neuron,
    kernel: str,
    keep: str,
    rows: int,
    beta: float,
    threshold: float,
    seed: int,
) -> None:
    given = problem(steps, batch, entering, neurons, seed)
    kind = Neuron(beta, threshold, *(getattr(neuron, name) for name in Neuron.__slots__[2:]))
    before = pipeline.CPU_ROWS
    pipeline.CPU_ROWS = rows
    try:
        fired, got = by_linear_lif(given, kind, torch.float64, kernel=kernel, keep=keep)
    finally:
        pipeline.CPU_ROWS = before
    if not steps:
        assert fired.shape == (0, batch, neurons) and torch.equal(got[3], given["carried"])
        assert not any(bool(gradient.any()) for gradient in (*got[:3], *got[4:]))
        return
    spikes, gradients = expected(given, kind)
    assert torch.equal(fired, spikes)
    for name, gradient, other in zip(NAMES, got, gradients, strict=True):
        assert torch.allclose(gradient.reshape(other.shape), other, rtol=1e-9, atol=1e-9), name


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
    assert wanted == [pipeline.Wanted(False, True, False, False)]


def test_without_gradients_nothing_is_kept() -> None:
    sizes = []
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            current = torch.randn(6, 2, 5).requires_grad_()
            spikes = lif(current, beta=0.9, threshold=1.0, kernel="torch")
            sizes.append(spikes.requires_grad)
    assert sizes == [True, False]
    shape = (6, 2, 5)
    assert pipeline.kept_shape(torch.device("cpu"), "torch", shape, False, "", torch.float32)[0] == (0,)


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reset": "half"}, "reset 'half'"),
        ({"threshold": 0.0}, "threshold 0"),
        ({"surrogate": "relu"}, "surrogate 'relu'"),
        ({"keep": "all"}, "keep 'all'"),
        ({"kernel": "gpu"}, "kernel 'gpu'"),
        ({"current": torch.zeros(3, 4)}, "expected [T, B, N]"),
        ({"beta": torch.full((5,), 0.9)}, "beta has 5 elements"),
        ({"potential": torch.zeros(9, 9)}, "potential has the shape [9, 9]"),
        ({"potential": torch.zeros(2, 4, device="meta")}, "potential is on meta"),
        ({"current": torch.zeros(3, 2, 4, dtype=torch.int32)}, "input in torch.int32"),
    ],
)
def test_wrong_shape_or_word_is_a_value_error(change: dict[str, Any], message: str) -> None:
    arguments = {"current": torch.zeros(3, 2, 4), "beta": 0.9, "threshold": 1.0, **change}
    with pytest.raises(ValueError) as error:
        lif(arguments.pop("current"), **arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(("keywords", "named"), [({"beta": 0.9}, "threshold"), ({"slop": 2.0}, "slop")])
def test_a_missing_and_an_unknown_keyword_are_named(keywords: dict[str, float], named: str) -> None:
    for function in (partial(lif, torch.zeros(3, 2, 4)), partial(linear_lif, torch.zeros(3, 2, 4), None)):
        with pytest.raises(TypeError, match=f"'{named}'"):
            function(**keywords)


@pytest.mark.parametrize(
    ("weight", "bias", "message"),
    [
        (torch.zeros(6, 3), None, "weight has the shape [6, 3]: expected [N_out, 4]"),
        (torch.zeros(4), None, "weight has the shape [4]"),
        (torch.zeros(6, 4).double(), None, "weight is in torch.float64"),
        (torch.zeros(6, 4), torch.zeros(1), "bias has the shape [1]: expected [6]"),
        (torch.zeros(6, 4), torch.zeros(12), "bias has the shape [12]"),
        (torch.zeros(6, 4), torch.zeros(1, 6), "bias has the shape [1, 6]"),
    ],
)
def test_wrong_weight_or_bias_is_a_value_error(weight: torch.Tensor, bias: torch.Tensor | None, message: str) -> None:
    with pytest.raises(ValueError) as error:
        linear_lif(torch.zeros(3, 2, 4), weight, bias, beta=0.9, threshold=1.0)
    assert message in str(error.value)


def test_a_backward_pass_outside_of_vmap_is_refused() -> None:
    currents = torch.randn(2, 5, 3, 4).requires_grad_()
    spikes = torch.vmap(lambda x: lif(x, beta=0.9, threshold=1.0, kernel="torch"))(currents)
    with pytest.raises(RuntimeError, match="nothing was kept"):
        torch.autograd.grad(spikes.sum(), currents)


@pytest.mark.parametrize("rows", [1024, 12])
def test_autocast_rounds_no_gradient(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "CPU_ROWS", rows)
    given = {name: one.float() for name, one in problem(20, 3, 10, 14).items()}
    weight, gradients = given["weight"].requires_grad_(), []
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            spikes = linear_lif(given["inputs"], weight, beta=0.9, threshold=1.0)
            gradients.append(torch.autograd.grad(spikes, weight, given["cotangent"])[0])
    assert torch.equal(*gradients)


def test_broken_compiler_auto_takes_torch_and_cpu_is_unavailable(tmp_path: Any) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\necho 'error: unsupported option -fopenmp' >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    script = (
        "import torch; from snnbench import kernels; x = torch.zeros(3, 2, 4)\n"
        "print(kernels.automatic(x.device, x.dtype), kernels.lif(x, beta=0.9, threshold=1.0).sum().item())\n"
        "try: kernels.lif(x, beta=0.9, threshold=1.0, kernel='cpu')\n"
        "except kernels.Unavailable as error: print(error)"
    )
    environment = {"SNNBENCH_HOME": str(tmp_path), "CC": str(tmp_path / "cc"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    first, second = done.stdout.splitlines()
    assert first == "torch 0.0", done.stderr
    assert "unsupported option -fopenmp" in second and "use the kernel 'torch'" in second


@pytest.mark.parametrize("name", ["triton", "cuda"])
def test_a_kernel_for_another_device_is_refused_and_not_replaced(name: str) -> None:
    with pytest.raises(kernels.Unsupported, match="CUDA devices only"):
        lif(torch.zeros(3, 2, 4), beta=0.9, threshold=1.0, kernel=name)


def test_import_compiles_nothing(tmp_path: Any) -> None:
    script = "import sys; import snnbench.kernels; print(sorted({'cuda.core', 'numba'} & set(sys.modules)))"
    environment = {"SNNBENCH_HOME": str(tmp_path), "CC": "/nowhere", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "[]", done.stderr
    assert not list(tmp_path.iterdir())
