"""Tests of the choice of oneDNN by the processor."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from snnbench.kernels import onednn

TEXT = """processor\t: 0
vendor_id\t: {vendor}
flags\t\t: fpu avx512f

processor\t: 1
vendor_id\t: {vendor}
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No choice of another test."""
    onednn.is_faster.cache_clear()
    yield
    onednn.is_faster.cache_clear()


def on(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str, capability: str = "AVX512") -> bool:
    """Whether oneDNN is chosen on a processor with this description."""
    (folder / "cpuinfo").write_text(text)
    monkeypatch.setattr(onednn, "CPUINFO", folder / "cpuinfo")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    return onednn.is_faster()


@pytest.mark.parametrize(
    ("vendor", "capability", "expected"),
    [("AuthenticAMD", "AVX512", True), ("GenuineIntel", "AVX512", False), ("AuthenticAMD", "AVX2", False)],
)
def test_amd_with_avx_512_multiplies_by_onednn(
    vendor: str, capability: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert on(monkeypatch, tmp_path, TEXT.format(vendor=vendor), capability) == expected


@pytest.mark.parametrize("text", ["", "CPU implementer\t: 0x41\n"])
def test_other_descriptions_mean_blas(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not on(monkeypatch, tmp_path, text)


def test_system_without_descriptions_means_blas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "CPUINFO", tmp_path / "absent")
    assert not onednn.is_faster()
