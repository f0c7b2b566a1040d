"""Tests of the layer's operators in C++: what autograd expects of them, their memory, and their compilation."""

import ctypes
import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from snnbench import kernels
from snnbench.kernels import Neuron, buffers, compiler, linear_cpu, linear_lif, linear_operators
from tests.frameworks.kernels.test_kernels import by_linear_lif, problem

pytestmark = pytest.mark.skipif(
    not linear_cpu.has_products(), reason="this build of torch does not export its products"
)

LARGE = 64, 16, 128
"""Spikes of more bytes than buffers.SMALLEST_BYTES."""


@pytest.fixture
def weight() -> torch.Tensor:
    torch.manual_seed(3)
    return torch.randn(5, 3).requires_grad_()


@pytest.fixture
def inputs() -> torch.Tensor:
    torch.manual_seed(4)
    return torch.rand(6, 2, 3)


@pytest.fixture
def reused() -> Iterator[None]:
    """Memory is used again, and none is idle at first."""
    kernels.reuse_memory()
    gc.collect()
    yield
    kernels.reuse_memory(False)


def layer(inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return linear_lif(inputs, weight, beta=0.9, threshold=1.0, kernel="cpu")


def test_autograd_sees_the_operator(inputs: torch.Tensor, weight: torch.Tensor) -> None:
    assert "CppFunction" in str(layer(inputs, weight).grad_fn)
    with torch.no_grad():
        assert layer(inputs, weight).grad_fn is None
    with torch.inference_mode():
        assert layer(inputs, weight).is_inference()


@pytest.mark.parametrize("of", ["inputs", "weight", "cotangent"])
def test_second_derivative_is_refused_for_every_tensor(of: str, inputs: torch.Tensor, weight: torch.Tensor) -> None:
    leaves = {"inputs": inputs, "weight": weight, "cotangent": torch.randn(6, 2, 5)}
    for name, leaf in leaves.items():
        leaf.requires_grad_(name in (of, "weight"))
    spikes = layer(inputs, weight)
    (gradient,) = torch.autograd.grad(spikes, weight, leaves["cotangent"], create_graph=True)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(gradient.sum(), leaves[of])


def test_changed_weight_is_noticed(inputs: torch.Tensor, weight: torch.Tensor) -> None:
    spikes = layer(inputs, weight)
    with torch.no_grad():
        weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        spikes.sum().backward()


def test_second_backward_pass_needs_a_retained_graph(inputs: torch.Tensor, weight: torch.Tensor) -> None:
    loss = layer(inputs, weight).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_hooks_see_the_kept_tensors(inputs: torch.Tensor, weight: torch.Tensor) -> None:
    shapes = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(inputs, weight)
    assert shapes == [(6, 2, 3), (5, 3), (6, 2, 5)]


def test_potential_alone_has_a_gradient(inputs: torch.Tensor, weight: torch.Tensor) -> None:
    _, last = linear_lif(inputs, weight, beta=0.9, threshold=1.0, kernel="cpu", return_potential=True)
    (gradient,) = torch.autograd.grad(last.sum(), weight)
    assert bool(gradient.any())


def test_gradient_keeps_its_plan_when_others_are_made(inputs: torch.Tensor, weight: torch.Tensor) -> None:
    """A cache of plans may forget one whose backward pass is still to come."""
    (expected,) = torch.autograd.grad(layer(inputs, weight).sum(), weight)
    spikes = layer(inputs, weight)
    linear_cpu._plans.cache_clear()
    for steps in range(1, 40):
        layer(torch.rand(steps, 1, 3), weight)
    gc.collect()
    (gradient,) = torch.autograd.grad(spikes.sum(), weight)
    assert torch.equal(gradient, expected)


@pytest.mark.usefixtures("reused")
def test_freed_memory_of_a_pass_is_used_again() -> None:
    weight = torch.randn(128, 128)
    first = layer(torch.rand(LARGE), weight)
    address = first.data_ptr()
    second = layer(torch.rand(LARGE), weight)
    assert second.data_ptr() != address
    part = first[3]
    del first
    assert layer(torch.rand(LARGE), weight).data_ptr() not in (address, second.data_ptr()), "a view holds it"
    del part
    assert layer(torch.rand(LARGE), weight).data_ptr() == address


@pytest.mark.usefixtures("reused")
def test_spikes_of_one_pass_survive_the_next() -> None:
    weight, inputs = torch.randn(128, 128).requires_grad_(), torch.rand(2, *LARGE)
    first = layer(inputs[0], weight)
    copy = first.clone()
    (gradient,) = torch.autograd.grad(first.sum(), weight, retain_graph=True)
    second = layer(inputs[1], weight)
    assert torch.equal(first, copy) and not torch.equal(first, second)
    first.mul_(2)  # as users of a surrogate may do
    (twice,) = torch.autograd.grad(first.sum(), weight)
    assert torch.allclose(twice, 2 * gradient)


@pytest.mark.parametrize(
    ("keep", "steps", "tiled"), [("potential", 2, True), ("nothing", 2, False), ("nothing", 200, True)]
)
def test_small_lean_pass_has_no_code_of_tiles(keep: str, steps: int, tiled: bool) -> None:
    library = linear_cpu.loaded("subtract", False, "fast_sigmoid", torch.float32, torch.float32)
    calls = []
    tile = ctypes.CFUNCTYPE(None)(lambda: calls.append(1))
    try:
        linear_cpu.use(library, linear_cpu.product(torch.float32), tile)
        by_linear_lif(problem(steps, 16, 32, 32), Neuron(0.9, 1.0), torch.float32, kernel="cpu", keep=keep)
    finally:
        linear_cpu.use(library, linear_cpu.product(torch.float32), linear_cpu.tile())
    assert bool(calls) == tiled


RESIDENT = """
import gc, torch
from snnbench import kernels

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

kernels.reuse_memory({reuse})
weight, inputs = torch.randn(64, 64), torch.rand(2000, 64, 64)
kernels.linear_lif(inputs[:10], weight, beta=0.9, threshold=1.0, kernel="cpu")
gc.collect()
before = resident()
spikes = kernels.linear_lif(inputs, weight, beta=0.9, threshold=1.0, kernel="cpu")
del spikes
held = resident() - before
{step}
print(held // 2**20, (resident() - before) // 2**20)
"""


@pytest.mark.parametrize(
    "step",
    [
        "gc.collect()",
        "kernels.reuse_memory(False)",
        "kernels.linear_lif(inputs[:1000], weight, beta=0.9, threshold=1.0)",
    ],
)
def test_idle_memory_is_given_back(step: str) -> None:
    held, after = map(int, process(RESIDENT.format(reuse=True, step=step)).split())
    assert held > 30 and after < (20 if "lif" in step else 4), "32 MiB of spikes"


def test_pool_is_opt_in() -> None:
    held, _ = map(int, process(RESIDENT.format(reuse=False, step="")).split())
    assert held < 4


def process(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with a compiler of C and none of C++."""
    caches = compiler.cpp_compiler, linear_operators.operators, linear_operators._warn, linear_cpu._plans
    monkeypatch.setattr(
        compiler.shutil, "which", lambda name, which=compiler.shutil.which: None if "++" in name else which(name)
    )
    for cached in caches:
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("no_compiler")
def test_machine_without_a_cpp_compiler_warns_once(
    inputs: torch.Tensor, weight: torch.Tensor, recwarn: pytest.WarningsRecorder
) -> None:
    spikes = layer(inputs, weight)
    layer(inputs[:4], weight)
    (warning,) = recwarn
    assert "install g++, or set CXX" in str(warning.message) and "slower" in str(warning.message)
    assert "CppFunction" not in str(spikes.grad_fn)


@pytest.mark.usefixtures("no_compiler")
def test_yardstick_is_unavailable_without_a_cpp_compiler() -> None:
    cpu = torch.device("cpu")
    require = kernels.choice.require.__wrapped__
    require("cpu", cpu, torch.float32)
    require("cpu", cpu, torch.bfloat16, at_full_speed=True)
    with pytest.raises(kernels.Unavailable, match=r"install g\+\+"):
        require("cpu", cpu, torch.float32, at_full_speed=True)


def test_second_load_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    path = linear_operators.compiled()
    monkeypatch.setattr(compiler, "_compile", lambda *_: pytest.fail("compiled again"))
    assert linear_operators.compiled() == path and path.exists()
    assert buffers._pools
