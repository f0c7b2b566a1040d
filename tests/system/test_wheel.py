"""Tests of a release: wheel and sdist work in an empty folder, by the names of shipped files."""

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import uv

import snnbench

pytestmark = pytest.mark.libraries

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 600
CHANGES = (
    'protocol.until="all"',
    "protocol.trials=1",
    "protocol.memory_trials=0",
    "protocol.remeasure=0",
    'sweep.libraries=["reference"]',
    'baseline="reference"',
    'case.dtype="float64"',
    "case.time_steps=20",
)
REFERENCE_ALONE = (*(part for change in CHANGES for part in ("--set", change)), "--only", "reset=subtract")
"""A cell that needs NumPy alone, of a shipped config."""


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
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this checkout, and the wheel that is made of the sdist."""
    folder = tmp_path_factory.mktemp("release")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(release: Path) -> Path:
    return release / f"snnbench-{snnbench.__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def sdist(release: Path) -> Path:
    return release / f"snnbench-{snnbench.__version__}.tar.gz"


def installed(package: Path, python: str | Path, folder: Path) -> Path:
    """snnbench as `uv tool install` puts it on the path."""
    folders = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    run(uv.find_uv_bin(), "tool", "install", "--python", python, f"{package}[parquet]", cwd=folder, **folders)
    return folder / "bin" / "snnbench"


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(wheel, sys.executable, tmp_path_factory.mktemp("tool"))


def test_release_passes_the_checks_of_twine(release: Path, wheel: Path, sdist: Path) -> None:
    assert {wheel, sdist} == set(release.iterdir())
    assert run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=release).count("PASSED") == 2


def test_sdist_holds_the_files_that_the_documentation_names(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "SECURITY.md", "action.yml", "docker/Dockerfile"}
    assert wanted <= names
    tracked = run("git", "ls-files", cwd=ROOT).split()
    assert names - {"PKG-INFO"} <= set(tracked), "nothing that git does not know"


def measured_in(folder: Path, program: Path) -> None:
    """Run, check and show a small recording in a folder that was empty; only the reference runs, with NumPy alone."""
    shown = run(program, "run", "--config", "quick", *REFERENCE_ALONE, "--env", "current", cwd=folder)
    assert re.search(r"reference +\|", shown) and "1 of 1 cell measured" in shown
    (recording,) = (folder / "results").iterdir()
    assert "keeps the rules of measurement" in run(program, "check", recording, cwd=folder)
    run(program, "report", recording, "--format", "html", "-o", folder / "page.html", cwd=folder)
    run(program, "site", folder / "results", "-o", folder / "site", cwd=folder)
    assert (folder / "page.html").stat().st_size > 100_000 and (folder / "site" / "index.html").is_file()


def test_installed_program_runs_a_shipped_config_by_name(program: Path, tmp_path: Path) -> None:
    """The config comes from the wheel, and the reference, which needs NumPy alone, is measured."""
    shown = run(program, "run", "--config", "quick", *REFERENCE_ALONE, cwd=tmp_path)
    assert "| reference |" in shown and "1 of 1 cell measured" in shown
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
