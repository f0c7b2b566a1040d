"""Tests of the calls of C in a pass of the layer."""

import ctypes
from typing import Any

import pytest
import torch

from snnbench.kernels import KEEPS, Neuron, linear_cpu, linear_lif
from tests.frameworks.kernels.test_kernels import by_linear_lif, problem

pytestmark = pytest.mark.skipif(
    not linear_cpu.has_products(), reason="this build of torch does not export its products"
)

POINTERS = 9
"""Of forward_pass_t in linear_cpu.h; the last ones are `kept`, `states` and `scratch`."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each call of C: "forward" for one that keeps values, "inference" for one that keeps none, or "backward"."""
    names: list[str] = []
    function, functions = ctypes.CFUNCTYPE(None, ctypes.c_void_p), linear_cpu.functions

    def noted(name: str, address: int) -> Any:
        def call(arguments: int) -> None:
            names.append("inference" if name == "forward" and not keeps(arguments) else name)
            function(address)(arguments)

        return function(call)

    def noted_functions(library: Any) -> list[int | None]:
        both = list(map(noted, ("forward", "backward"), functions(library)))
        held.extend(both)
        return [ctypes.cast(each, ctypes.c_void_p).value for each in both]

    held: list[Any] = []
    monkeypatch.setattr(linear_cpu, "functions", noted_functions)
    monkeypatch.setattr(linear_cpu, "_plans", linear_cpu._plans.__wrapped__)
    monkeypatch.setattr(torch, "mm", lambda *_, **__: pytest.fail("a product of Python's"))
    return names


def keeps(arguments: int) -> bool:
    """Whether a forward pass keeps values for a backward pass, by the address of its forward_pass_t."""
    *_, values, states, _ = (ctypes.c_void_p * POINTERS).from_address(arguments + ctypes.sizeof(linear_cpu.Sizes))
    return bool(values or states)


def test_pass_is_one_call_each_way(calls: list[str]) -> None:
    by_linear_lif(problem(500, 16, 11, 70), Neuron(0.9, 1.0), torch.float32, kernel="cpu")
    assert calls == ["forward", "backward"]


@pytest.mark.parametrize("keep", KEEPS)
def test_pass_without_gradients_keeps_nothing(keep: str, calls: list[str]) -> None:
    inputs, weight = torch.rand(6, 2, 3), torch.randn(5, 3)

    def run() -> torch.Tensor:
        return linear_lif(inputs, weight, beta=0.9, threshold=1.0, kernel="cpu", keep=keep)

    run()
    weight.requires_grad_()
    with torch.no_grad():
        run()
    assert calls == ["inference", "inference"]
    run()
    assert calls[2:] == ["forward"]


def test_forward_mode_is_refused_and_not_left_out() -> None:
    inputs, weight = torch.rand(6, 2, 3), torch.randn(5, 3)
    with torch.no_grad(), torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(inputs, torch.ones_like(inputs))
        with pytest.raises(RuntimeError, match="jvp"):
            linear_lif(dual, weight, beta=0.9, threshold=1.0, kernel="cpu")
