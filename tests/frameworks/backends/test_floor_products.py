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
def test_libraries_are_compared_once_for_each_product(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    monkeypatch.setattr(floor_products, "faster", lambda runs: compared.append(runs) or 0)
    matrices = torch.randn(30, 20), torch.randn(30, 20), torch.randn(20, 20)
    for _ in range(2):
        assert all(getattr(run, "func", run) is torch.mm for run in floor_products.products(*matrices).values())
    assert len(compared) == 3


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
def test_long_products_are_tried_on_their_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(floor_products, "faster", lambda runs: tried.extend(len(run()) for run in runs) or 0)
    monkeypatch.setattr(floor_products, "TRIED_FLOPS", 8 * 2 * 20 * 20)
    monkeypatch.setattr(floor_products, "FEWEST_TRIED", 1)
    floor_products.products(torch.randn(30, 20), torch.randn(30, 20), torch.randn(20, 20))
    assert tried == [8, 8, 20, 20, 8, 8]  # the gradient of weights sums over rows


@pytest.mark.parametrize(("durations_ms", "expected"), [((9, 8, 8), 0), ((50, 50, 2), 1), ((50, 5, 5), 0)])
def test_fastest_time_counts_and_not_the_first(durations_ms: tuple[int, ...], expected: int) -> None:
    """The first run always takes 4 ms; the other takes these times in turn."""
    now, others = 0, list(durations_ms)

    def take(duration_ms: int) -> None:
        nonlocal now
        now += duration_ms * 1_000_000

    runs = [lambda: take(4), lambda: take(others.pop(0) if others else durations_ms[-1])]
    assert floor_products.faster(runs, lambda: now) == expected
    assert len(others) == 0, "each has its tries"


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_formats_have_torch_s_own_products(dtype: torch.dtype) -> None:
    matrices = torch.randn(30, 20).to(dtype), torch.randn(30, 20).to(dtype), torch.randn(20, 20).to(dtype)
    assert all(getattr(run, "func", run) is torch.mm for run in floor_products.products(*matrices).values())
