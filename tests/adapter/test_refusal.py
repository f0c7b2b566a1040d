"""Tests of refusals: each is defined once, and each gives its cell the right word."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from snnbench import adapter
from snnbench.adapter import refusal

ROOT = Path(__file__).parents[2]
FILES = [path for folder in ("snnbench", "adapters", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
NAMES = {"Unsupported", "Unavailable"}


def test_each_refusal_is_defined_once() -> None:
    """Two classes of one name once made a missing compiler `unsupported`: an adapter's `except` missed the other."""
    defined = [
        (node.name, path.relative_to(ROOT).as_posix())
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name in NAMES
    ]
    assert sorted(defined) == [(name, "snnbench/adapter/refusal.py") for name in sorted(NAMES)]
    assert (adapter.Unsupported, adapter.Unavailable) == (refusal.Unsupported, refusal.Unavailable)


def test_kernels_refuse_with_the_classes_of_the_harness() -> None:
    pytest.importorskip("torch")
    from snnbench import kernels

    assert (kernels.Unsupported, kernels.Unavailable) == (refusal.Unsupported, refusal.Unavailable)


def test_kernel_refuses_unsupported_device_or_dtype() -> None:
    """The kernel's own limits count, whatever hardware the machine has."""
    torch = pytest.importorskip("torch")
    from snnbench import kernels

    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    for name, device, dtype in (
        ("cpu", cuda, torch.float32),
        ("cuda", cpu, torch.float32),
        ("triton", cpu, torch.float32),
        ("cuda", cuda, torch.float64),
        ("triton", cuda, torch.float64),
    ):
        with pytest.raises(refusal.Unsupported, match=f"kernel '{name}'"):
            kernels.require(name, device, dtype)
    assert kernels.automatic(cuda, torch.float64) == "torch"


def test_fused_adapter_reports_unavailable_or_unsupported(tmp_path: Path) -> None:
    """In a separate process without a compiler on its PATH. The adapter passes the kernel's message on unchanged."""
    pytest.importorskip("torch")
    script = (
        "from pathlib import Path; from snnbench import adapter; from snnbench.adapter import loading\n"
        "from snnbench.workloads import linear_lif\n"
        "from tests.fakes import CASE\n"
        f"module = loading.load(Path({str(ROOT / 'adapters' / 'fused.py')!r}))\n"
        "for device, dtype in (('cpu', 'float32'), ('cuda', 'float64')):\n"
        "    try: linear_lif.builder(module)(CASE.with_(device=device, dtype=dtype), [], device)\n"
        "    except (adapter.Unsupported, adapter.Unavailable) as error: print(type(error).__name__, error)"
    )
    environment = {"PATH": str(tmp_path), "SNNBENCH_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert len(done.stdout.splitlines()) == 2, done.stdout + done.stderr
    without_compiler, without_float64 = done.stdout.splitlines()
    assert without_compiler.startswith("Unavailable no C compiler on this machine: install gcc")
    assert without_float64.startswith("Unsupported the kernel 'cuda' has no float64")
