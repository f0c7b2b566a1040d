"""Tests of the linear layer and its neuron in one C call: threads, kept formats, and passes left to the pipeline."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from snnbench.kernels import KEEPS, Neuron, linear_cpu, linear_lif, linear_operators, onednn, stretches
from tests.frameworks.kernels.test_kernels import NAMES, by_linear_lif, expected, problem, stretches_of
from tests.oracle import FEW_NEURONS, distance, identifier

pytestmark = pytest.mark.skipif(
    not linear_cpu.has_products(), reason="this build of torch does not export its products"
)

NEURON = Neuron(0.9, 1.0)


@pytest.fixture(params=[2, 3], ids=["2-threads", "3-threads"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """So many threads divide even a small layer, in stretches of seven steps."""
    monkeypatch.setattr(linear_cpu, "ONE_THREAD", 0)
    stretches_of(21, monkeypatch)
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("keep", ["potential", "nothing"])
@pytest.mark.parametrize("neuron", FEW_NEURONS, ids=identifier)
def test_threads_divide_neurons_with_every_gradient(neuron: Neuron, keep: str, threads: int) -> None:
    given = problem(23, 3, 11, 70)
    spikes, gradients = expected(given, neuron)
    fired, got = by_linear_lif(given, neuron, torch.float64, kernel="cpu", keep=keep)
    assert torch.equal(fired, spikes)
    for name, gradient, other in zip(NAMES, got, gradients, strict=True):
        assert distance(gradient.reshape(other.shape), other) < 1e-12, name


@pytest.mark.parametrize("neurons", [1, 15, 16, 17, 33, 1030])
def test_any_number_of_neurons_can_be_divided(neurons: int, threads: int) -> None:
    given = problem(9, 2, 5, neurons)
    spikes, gradients = expected(given, NEURON)
    fired, got = by_linear_lif(given, NEURON, torch.float64, kernel="cpu")
    assert torch.equal(fired, spikes)
    for name, gradient, other in zip(NAMES, got, gradients, strict=True):
        assert torch.allclose(gradient.reshape(other.shape), other, rtol=1e-9, atol=1e-9), name


@pytest.mark.parametrize("keep", KEEPS)
def test_pipeline_has_the_same_numbers(keep: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(23, 3, 11, 70)
    fired, got = by_linear_lif(given, NEURON, torch.float32, kernel="cpu", keep=keep)
    monkeypatch.setattr(linear_cpu, "plans", lambda *_: None)
    others_fired, others = by_linear_lif(given, NEURON, torch.float32, kernel="cpu", keep=keep)
    assert torch.equal(fired, others_fired)
    for name, gradient, other in zip(NAMES, got, others, strict=True):
        assert distance(gradient.double(), other.double()) < 2e-5, name


def test_gradients_without_the_others_are_the_same(threads: int) -> None:
    given = problem(23, 3, 11, 70)
    names = NAMES[:4]

    def gradients(required: tuple[str, ...]) -> dict[str, torch.Tensor]:
        leaves = {name: given[name].float().requires_grad_(name in required) for name in names}
        inputs, weight, bias, potential = leaves.values()
        spikes = linear_lif(inputs, weight, bias, beta=0.9, threshold=1.0, potential=potential, kernel="cpu")
        wanted = [leaves[name] for name in required]
        return dict(zip(required, torch.autograd.grad(spikes, wanted, given["cotangent"].float()), strict=True))

    every = gradients(names)
    for name in names:
        assert torch.equal(gradients((name,))[name], every[name]), name


def test_bias_of_another_format_is_converted(threads: int) -> None:
    given = problem(23, 3, 11, 70)
    inputs, weight, bias = (given[name].float() for name in NAMES[:3])
    settings: dict[str, Any] = {"beta": 0.9, "threshold": 1.0, "kernel": "cpu"}
    expected_spikes = linear_lif(inputs, weight, bias, **settings)
    strided = torch.stack([bias, bias], 1)[:, 0].double()
    assert torch.equal(linear_lif(inputs, weight, strided, **settings), expected_spikes)


def test_backward_pass_can_be_repeated() -> None:
    given = problem(23, 3, 11, 70)
    weight = given["weight"].float().requires_grad_()
    spikes = linear_lif(given["inputs"].float(), weight, beta=0.9, threshold=1.0, kernel="cpu")
    cotangent = given["cotangent"].float()
    (first,) = torch.autograd.grad(spikes, weight, cotangent, retain_graph=True)
    (second,) = torch.autograd.grad(spikes, weight, cotangent)
    assert torch.equal(first, second) and bool(first.any())


def test_calls_at_the_same_time_have_the_same_numbers(threads: int) -> None:
    given = problem(40, 3, 11, 70)

    def gradients(_: int) -> list[torch.Tensor]:
        torch.set_num_threads(threads)  # each thread has a number of its own
        spikes, gradients = by_linear_lif(given, NEURON, torch.float32, kernel="cpu")
        return [spikes, *gradients]

    first = gradients(0)
    with ThreadPoolExecutor(4) as pool:
        for others in pool.map(gradients, range(40)):
            assert all(map(torch.equal, first, others))


FORK = """
import os, torch
from snnbench.kernels import linear_cpu, linear_lif

linear_cpu.ONE_THREAD = 0
torch.set_num_threads(2)
inputs, weight = (torch.rand(40, 3, 11) < 0.5).float(), torch.randn(70, 11)

def spikes(reset):
    return linear_lif(inputs, weight, beta=0.9, threshold=1.0, reset=reset)

def same():
    return all(torch.equal(first, spikes("subtract")) for _ in range(3))

torch.zeros(1 << 20).add(1)  # in a parallel region
first = spikes("subtract")
child = os.fork()
if not child:
    os._exit(0 if same() and spikes("zero").any() else 1)  # "zero" is compiled code that the parent has not loaded
assert os.waitpid(child, 0)[1] == 0 and same()
"""


def test_child_after_a_fork_needs_no_thread_of_its_parent() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_products_of_others_keep_their_threads() -> None:
    blas = linear_cpu._blas()
    before = blas.MKL_Set_Num_Threads_Local(0)
    blas.MKL_Set_Num_Threads_Local(before)
    by_linear_lif(problem(5, 2, 3, 4), NEURON, torch.float32, kernel="cpu")
    assert blas.MKL_Set_Num_Threads_Local(before) == before


@pytest.mark.parametrize(("shape", "dtype"), [((0, 2, 3), torch.float32), ((4, 2, 3), torch.bfloat16)])
def test_other_passes_run_in_the_pipeline(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    settings = NEURON, "potential", "cpu"
    assert not linear_cpu.plans(torch.zeros(shape, dtype=dtype), torch.zeros(5, 3, dtype=dtype), *settings)
    assert linear_cpu.plans(torch.zeros(4, 2, 3), torch.zeros(5, 3), *settings)
    assert not linear_cpu.plans(torch.zeros(4, 2, 3), torch.zeros(5, 3), *settings[:2], "torch")
    assert not linear_cpu.plans(torch.zeros(4, 2, 3), None, *settings)


def test_missing_export_leaves_passes_to_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_cpu, "_blas", lambda: None)
    stretches_of(21, monkeypatch)
    monkeypatch.setattr(linear_operators, "operators", lambda: pytest.fail("an operator in C++"))
    given = problem(23, 3, 11, 17)
    fired, _ = by_linear_lif(given, NEURON, torch.float32, kernel="cpu")
    assert torch.equal(fired.double(), expected(given, NEURON)[0])


WIDTHS = [(5, 3, 7, 70), (80, 16, 70, 300), (80, 16, 1024, 600), (3, 2, 600, 1100), (1, 2, 20, 70)]
"""Steps, batch, inputs and neurons: parts of tiles, several of them, rows of 4 KiB, few inputs for each thread. Each
sum, over rows, inputs or neurons, goes over more than one tile and over more than one stretch in one of them."""


@pytest.mark.parametrize("keep", ["potential", "nothing"])
@pytest.mark.parametrize("sizes", WIDTHS, ids=str)
def test_products_from_tiles_have_the_numbers_of_blas(
    sizes: tuple[int, int, int, int], keep: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = linear_cpu.loaded("subtract", False, "fast_sigmoid", torch.float32, torch.float32)
    blas, tile = linear_cpu.product(torch.float32), getattr(linear_cpu._blas(), linear_cpu.TILE, None)
    if tile is None:
        pytest.skip("this build of torch does not export products of tiles")
    steps, batch, entering, neurons = sizes
    given = problem(steps, batch, entering, neurons)
    for name in ("CPU_ROWS", "LEAST_ROWS"):
        monkeypatch.setattr(stretches, name, 640)
    try:
        linear_cpu.use(library, blas, tile)
        fired, got = by_linear_lif(given, NEURON, torch.float32, kernel="cpu", keep=keep)
        linear_cpu.use(library, blas)
        others_fired, others = by_linear_lif(given, NEURON, torch.float32, kernel="cpu", keep=keep)
    finally:
        linear_cpu.use(library, blas, linear_cpu.tile())
    assert torch.equal(fired, others_fired)
    for name, gradient, other in zip(NAMES, got, others, strict=True):
        assert distance(gradient.double(), other.double()) < 2e-5, name


@pytest.mark.parametrize("keep", ["potential", "nothing"])
@pytest.mark.parametrize("rate", [0.02, 1.0])
@pytest.mark.parametrize("sizes", [(23, 3, 11, 70), (9, 2, 130, 17), (41, 2, 70, 200)], ids=str)
def test_products_from_events_have_the_numbers_of_blas(
    sizes: tuple[int, int, int, int], rate: float, keep: str, threads: int
) -> None:
    given = problem(*sizes)
    random = torch.Generator().manual_seed(1)
    fires = torch.rand(given["inputs"].shape, generator=random) < rate
    given["inputs"] = torch.randn(fires.shape, generator=random).double() * fires
    fired, got = by_linear_lif(given, NEURON, torch.float32, kernel="event", keep=keep)
    others_fired, others = by_linear_lif(given, NEURON, torch.float32, kernel="cpu", keep=keep)
    assert torch.equal(fired, others_fired)
    for name, gradient, other in zip(NAMES, got, others, strict=True):
        assert distance(gradient.double(), other.double()) < 2e-5, name


@pytest.mark.parametrize(
    ("keep", "neurons", "expected"), [("potential", 96, 2), ("nothing", 96, 1), ("nothing", 256, 2)]
)
def test_lean_pass_of_a_small_layer_has_one_thread(keep: str, neurons: int, expected: int) -> None:
    kind = NEURON.reset, NEURON.detach_reset, NEURON.surrogate, NEURON.slope
    plans = linear_cpu._plans(torch.Size((25, 16, neurons)), neurons, torch.float32, keep, kind, "cpu", 2)
    assert plans is not None and plans.training.threads == expected


@pytest.mark.parametrize(("steps", "expected"), [(61, 1), (62, 2), (122, 2), (123, 4)])
def test_thread_has_few_neurons_in_a_long_product_only(steps: int, expected: int) -> None:
    assert linear_cpu.threads(16 * steps, 32, 64, most=8, lean=1) == expected, "64 neurons"


def test_float32_alone_has_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "is_faster", lambda: False)
    assert linear_cpu.tile() is None
    monkeypatch.setattr(onednn, "is_faster", lambda: True)
    monkeypatch.setattr(linear_cpu, "TILE", "no_such_function")
    assert linear_cpu.tile() is None, "a later torch may export none"
