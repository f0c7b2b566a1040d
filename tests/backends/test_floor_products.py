"""Tests of the floor's products: the faster of two libraries, with the same numbers."""

from collections.abc import Iterator

import pytest
import torch

from snnbench.backends.torch import floor_products
from snnbench.kernels import onednn


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A processor with two libraries to choose from, and no choice of another test."""
    monkeypatch.setattr(onednn, "is_faster", lambda: True)
    floor_products._faster.clear()
    yield
    floor_products._faster.clear()


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize("faster", [0, 1])
def test_products_of_both_libraries_are_the_same(faster: int) -> None:
    x, g, w = torch.randn(30, 20), torch.randn(30, 20), torch.randn(20, 20)
    for name in ("current", "weight_gradient", "input_gradient"):
        floor_products._faster[name, x.shape, w.shape] = faster
    expected = {"current": x @ w.T, "weight_gradient": g.T @ x, "input_gradient": g @ w}
    runs = floor_products.products(x, g, w)
    assert all(torch.allclose(run(), expected[name], atol=1e-5) for name, run in runs.items())
    assert [getattr(run, "func", run) is torch.mm for run in runs.values()] == [not faster] * 3


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
def test_faster_library_is_chosen_once_for_each_product(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[object] = []

    def duration_ns(run: floor_products.Run) -> int:
        timed.append(run)
        return 1 if getattr(run, "func", run) is torch.mm else 2

    monkeypatch.setattr(floor_products, "duration_ns", duration_ns)
    matrices = torch.randn(30, 20), torch.randn(30, 20), torch.randn(20, 20)
    for _ in range(2):
        assert all(getattr(run, "func", run) is torch.mm for run in floor_products.products(*matrices).values())
    assert len(timed) == 6


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_formats_have_torch_s_own_products(dtype: torch.dtype) -> None:
    matrices = torch.randn(30, 20).to(dtype), torch.randn(30, 20).to(dtype), torch.randn(20, 20).to(dtype)
    assert all(getattr(run, "func", run) is torch.mm for run in floor_products.products(*matrices).values())
