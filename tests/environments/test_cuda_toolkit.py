"""Tests of the CUDA compiler that comes into an environment as packages."""

from dataclasses import replace
from pathlib import Path

import pytest

from snnbench.environments import cuda_toolkit
from snnbench.run.known_outcomes import KnownOutcomes
from snnbench.run.runner import Lane
from snnbench.run.setup import RunContext, Setup
from tests.bench import PROTOCOL, Bench, bench
from tests.fakes import CORRECT
from tests.run.test_executor import CARDS, cells

__all__ = ["bench"]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The folder of an environment with the files of these packages."""
    home = tmp_path / "env/lib/python3.12/site-packages/nvidia/cu13"
    for name in ("bin/nvcc", "lib/libcudart.so.13"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    return tmp_path / "env"


def test_compiler_of_packages_is_completed_for_a_build(environment: Path) -> None:
    for _ in range(2):
        variables = cuda_toolkit.prepare(environment)
    assert (Path(variables["CUDA_HOME"]) / "lib64" / "libcudart.so").is_file(), "the linker's name"
    assert variables["PATH"].startswith(str(environment / "bin")), "ninja is there"
    assert variables["TORCH_CUDA_ARCH_LIST"] == cuda_toolkit.ARCHITECTURES, "of whatever card, or of none"
    assert "TORCH_CUDA_ARCH_LIST" not in cuda_toolkit.variables(environment), "a worker compiles for its card"


def test_environment_without_a_compiler_has_no_variables(tmp_path: Path) -> None:
    assert cuda_toolkit.prepare(tmp_path) == cuda_toolkit.variables(tmp_path) == {}


def test_worker_on_a_card_finds_the_compiler_of_its_environment(bench: Bench, environment: Path) -> None:
    bench.add("a", CORRECT)
    run = RunContext({"": Setup(bench.adapters, bench.interpreters)}, PROTOCOL, "a server", 1 << 40)
    (cell, *_) = cells()
    lane = Lane(run, KnownOutcomes(), CARDS[0])
    assert "CUDA_HOME" not in lane.program_of(cell).env
    python = environment / "bin" / "python"
    bench.interpreters.update({key: replace(one, python=python) for key, one in bench.interpreters.items()})
    assert lane.program_of(cell).env["CUDA_HOME"].startswith(str(environment))
    assert "CUDA_HOME" not in Lane(run, KnownOutcomes()).program_of(cell).env
