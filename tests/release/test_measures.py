"""A test that nothing but its own tests and documents knows a measure: all other tests pass without its folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT

NAME = "neuron_share"
FOLDERS = ("analysis", "checking", "plan", "recording", "report", "run", "worker", "measures", "test_layers.py")
WITH_THE_MEASURE = (
    *("analysis/test_floors", "checking/test_shipped_proofs", "plan/test_configs", "recording/test_closing"),
    *("recording/test_json_schema", "recording/test_record"),
)
"""Tests that read committed recordings or configs with the measure."""


def test_other_tests_pass_without_a_measure(tmp_path: Path) -> None:
    """Tests of documents, and of recordings and configs that have it, are left out."""
    for part in ROOT.iterdir():
        if part.name in ("snnbench", "tests"):
            shutil.copytree(part, tmp_path / part.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif not part.name.startswith(".venv"):
            (tmp_path / part.name).symlink_to(part)
    shutil.rmtree(tmp_path / "snnbench" / "measures" / NAME)
    for path in tmp_path.glob(f"tests/**/test_{NAME}.py"):
        path.unlink()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/{folder}" for folder in FOLDERS)]
    command += [f"--ignore=tests/{name}.py" for name in WITH_THE_MEASURE]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:]
