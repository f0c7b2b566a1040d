"""Tests of the wheel: installed by itself, it works in an empty folder, by the names of shipped files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import uv

import snnbench

pytestmark = pytest.mark.libraries

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 600


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={**os.environ, **variables},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """snnbench as `uv tool install` puts it on the path, from a wheel."""
    folder = tmp_path_factory.mktemp("tool")
    binary = uv.find_uv_bin()
    run(binary, "build", "--wheel", "--out-dir", folder / "wheels", ROOT, cwd=folder)
    (wheel,) = (folder / "wheels").glob("snnbench-*.whl")
    assert wheel.name.startswith(f"snnbench-{snnbench.__version__}-")
    folders = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    run(binary, "tool", "install", "--python", sys.executable, wheel, cwd=folder, **folders)
    return folder / "bin" / "snnbench"


def test_installed_program_runs_a_shipped_config_by_name(program: Path, tmp_path: Path) -> None:
    """The config comes from the wheel, and the reference, which needs NumPy alone, is measured."""
    protocol = ("protocol.trials=1", "protocol.memory_trials=0", "protocol.remeasure=0")
    changes = (*protocol, 'sweep.libraries=["reference"]', 'baseline="reference"', 'case.dtype="float64"')
    options = [part for change in changes for part in ("--set", change)]
    shown = run(program, "run", "--config", "quick", *options, cwd=tmp_path)
    assert "| reference |" in shown and "2 of 2 cells measured" in shown
    (recording,) = (tmp_path / "results").iterdir()
    assert "keeps the rules of measurement" in run(program, "check", recording, cwd=tmp_path)


def test_installed_program_lists_its_adapters(program: Path, tmp_path: Path) -> None:
    shown = run(program, "list", cwd=tmp_path)
    assert all(f"| {name}" in shown for name in ("norse/box", "snntorch/unbind", "fused/cpu"))
    assert run(program, "--version", cwd=tmp_path) == f"snnbench {snnbench.__version__}\n"


def test_installed_program_completes_its_commands(program: Path, tmp_path: Path) -> None:
    """The shell asks the program itself, by variables."""
    variables = {"_SNNBENCH_COMPLETE": "complete_bash", "COMP_WORDS": "snnbench comp", "COMP_CWORD": "1"}
    assert run(program, cwd=tmp_path, **variables).split() == ["compare"]
