"""Tests of a release: the wheel on every supported Python that is here, and the sdist on this one."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.system.test_wheel import ROOT, installed, measured_in, release, sdist, wheel

__all__ = ["release", "sdist", "wheel"]

pytestmark = pytest.mark.libraries

OTHER_PYTHONS = ("3.12", "3.13", "3.14")
"""The tests themselves run on Python 3.11, the oldest supported one."""


def other_python(version: str) -> Path:
    """An interpreter of this version on the path, or of pyenv; the test is skipped without one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for python in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        if python and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            return Path(python)
    pytest.skip(f"no Python {version} here")


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_wheel_runs_on(version: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    measured_in(tmp_path, installed(wheel, other_python(version), tmp_path_factory.mktemp("other")))


def test_sdist_installs_and_runs(sdist: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    measured_in(tmp_path, installed(sdist, sys.executable, tmp_path_factory.mktemp("sdist")))


def test_supported_pythons_are_the_declared_ones() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {line.rpartition(" ")[2] for line in declared["classifiers"] if re.search(r"Python :: 3\.\d+$", line)}
    assert named == {"3.11", *OTHER_PYTHONS} and declared["requires-python"] == ">=3.11"
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    (set_up,) = (step["with"] for step in workflow["jobs"]["tests"]["steps"] if "setup-python" in step.get("uses", ""))
    assert set(set_up["python-version"].split()) == named
