"""Tests of the CUDA kernels' compilation, for GPUs without a GPU: machine code, registers, and the cache."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from snnbench.adapter.refusal import Unavailable
from snnbench.kernels import lif_cuda
from snnbench.kernels.compiler import cache_folder
from snnbench.kernels.lif_cuda import BACKWARD, FORWARD, LARGE, MEDIUM, SMALL, Build, Strip

ALL_SUMS = lif_cuda.backward_strip(1 << 20, 0)
VARIANTS: list[Build] = [
    lif_cuda.forward_build("subtract", torch.float32, torch.float32, True, FORWARD[SMALL]),
    lif_cuda.forward_build("zero", torch.float32, torch.bfloat16, True, FORWARD[LARGE]),
    lif_cuda.forward_build("subtract", torch.float16, torch.float16, True, FORWARD[MEDIUM]),
    lif_cuda.backward_build(
        "subtract", False, "sigmoid", torch.float32, torch.float32, (True, True, True), BACKWARD[SMALL]
    ),
    lif_cuda.backward_build("zero", False, "atan", torch.float32, torch.bfloat16, (True, True, True), ALL_SUMS),
    *(
        lif_cuda.backward_build("zero", False, name, torch.float16, torch.float32, (True, True, True), ALL_SUMS)
        for name in ("sigmoid", "rectangle", "exponential")
    ),
    lif_cuda.forward_build("subtract", torch.float32, torch.float32, False, FORWARD[LARGE], has_synapse=True),
    lif_cuda.backward_build(
        "zero", False, "sigmoid", torch.float32, torch.float32, (True, True, True), ALL_SUMS, has_synapse=True
    ),
    lif_cuda.backward_build(
        "subtract", False, "sigmoid", torch.bfloat16, torch.bfloat16, (True, False, False), BACKWARD[MEDIUM]
    ),
    lif_cuda.backward_build(
        "subtract", False, "sigmoid", torch.float32, torch.float32, (True, True, True), Strip(1, 16, 128)
    ),
]
"""One build of each size and format, with all sums if registers are scarce, and the builds for odd column counts."""
ARCHITECTURES = ("sm_80", "sm_89", "sm_90", "sm_100")
"""A100, RTX 4090 and L40, H100 and H200, B200."""


@pytest.fixture
def nvrtc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NVRTC (it needs no GPU) and an empty cache."""
    monkeypatch.setenv("SNNBENCH_HOME", str(tmp_path))
    try:
        lif_cuda._nvrtc_version()
    except Unavailable as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("build", VARIANTS, ids=lambda build: "-".join(value for _, value in build.macros[-6:]))
def test_nvrtc_makes_machine_code(build: Build, arch: str) -> None:
    code = lif_cuda.cubin(build, arch)
    assert code[:4] == b"\x7fELF" and build.name.encode() in code


NO_SPILLS = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"


@pytest.fixture
def assembled(nvrtc: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[Build, str], str]:
    """A function that compiles a build for an architecture, and returns the assembler's report of its registers."""
    monkeypatch.setitem(lif_cuda.OPTIONS, "ptxas_options", ["-v"])

    def report(build: Build, arch: str) -> str:
        log = io.StringIO()
        lif_cuda._compile(lif_cuda.SOURCE.read_text(), build, arch, log)
        return log.getvalue()

    return report


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_registers_suffice(assembled: Callable[[Build, str], str], arch: str) -> None:
    """No build spills: its state and two batches of rows stay in registers."""
    for build in VARIANTS:
        report = assembled(build, arch)
        assert f"Compiling entry function '{build.name}' for '{arch}'" in report, (build, report)
        assert NO_SPILLS in report, (build, report)
        assert "warning" not in report, report
        registers = re.search(r"Used (\d+) registers", report)
        assert registers is not None, report
        macros = dict(build.macros)
        print(arch, build.name, *(macros[name] for name in ("STORED", "KEPT", "VECTOR", "ROWS")), registers[1])


def test_assembler_reports_too_large_a_strip(assembled: Callable[[Build, str], str]) -> None:
    large = Strip(vector=4, rows=32, threads=128)
    build = lif_cuda.backward_build("zero", False, "atan", torch.float32, torch.float32, (True, True, True), large)
    assert NO_SPILLS not in assembled(build, "sm_90")


@pytest.mark.usefixtures("nvrtc")
def test_machine_code_is_kept_by_all_that_it_depends_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, other = VARIANTS[:2]
    code = lif_cuda.cubin(first, "sm_90")
    monkeypatch.setattr(lif_cuda, "_compile", lambda *arguments: b"compiled")
    assert lif_cuda.cubin(first, "sm_90") == code
    assert lif_cuda.cubin(other, "sm_90") == lif_cuda.cubin(first, "sm_80") == b"compiled"
    monkeypatch.setitem(lif_cuda.OPTIONS, "prec_div", True)
    assert lif_cuda.cubin(first, "sm_90") == b"compiled"
    monkeypatch.setattr(lif_cuda, "_nvrtc_version", lambda: (1, 0))
    assert lif_cuda.cubin(first, "sm_90") == b"compiled"
    assert len(list(cache_folder().glob("*.cubin"))) == len(list(tmp_path.rglob("*.*"))) == 5


@pytest.mark.usefixtures("nvrtc")
def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kernels").write_text("not a folder")
    monkeypatch.setattr(lif_cuda, "_compile", lambda *arguments: b"compiled")
    assert lif_cuda.cubin(VARIANTS[0], "sm_90") == b"compiled"


def test_importing_the_module_imports_no_compiler() -> None:
    code = "import sys, snnbench.kernels.lif_cuda; assert 'cuda.core' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_cuda_core_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    lif_cuda._nvrtc_version.cache_clear()
    with pytest.raises(Unavailable, match="pip install"):
        lif_cuda.cubin(VARIANTS[0], "sm_90")
