"""Tests of the refusals by kernels and their adapter: the classes of the harness, with the kernel's own message."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from snnbench import kernels
from snnbench.adapter import loading, refusal
from tests.fakes import CASE, profile

ROOT = Path(__file__).parents[3]


def test_kernels_refuse_with_the_classes_of_the_harness() -> None:
    assert (kernels.Unsupported, kernels.Unavailable) == (refusal.Unsupported, refusal.Unavailable)


def test_kernel_refuses_unsupported_device_or_dtype() -> None:
    """The kernel's own limits count, whatever hardware the machine has."""
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


def test_fused_has_events_in_linear_layers_only() -> None:
    case = CASE.with_(dtype="float32", **profile("subtract"))
    neuron = loading.load(ROOT / "adapters" / "fused.py").neuron(case, "event")
    assert neuron.joined(torch.nn.Linear(4, 3))(torch.ones(2, 5, 4)).shape == (2, 5, 3)
    with pytest.raises(refusal.Unsupported, match="leaves them to the framework"):
        neuron.layer(3)
