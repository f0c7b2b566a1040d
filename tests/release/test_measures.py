"""A test that nothing but its own tests and documents knows a measure: all tests pass in a copy without its folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT

NAME = "neuron_share"


def test_all_other_tests_pass_without_a_measure(tmp_path: Path) -> None:
    """Tests of documents are left out: documents describe the measure."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.splitlines():
        if name.startswith(("docs/", "results/")) and not name.endswith(".toml") and "quick" not in name:
            continue
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    shutil.rmtree(tmp_path / "snnbench" / "measures" / NAME)
    for path in tmp_path.glob(f"tests/**/test_{NAME}.py"):
        path.unlink()
    folders = ("analysis", "checking", "plan", "recording", "report", "run", "worker", "measures", "test_layers.py")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{folder}" for folder in folders)]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:]
