"""Tests of the source by ruff and mypy, each in a process of its own beside the other tests."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("tool", [["mypy"], ["ruff", "check", "."]], ids=lambda tool: tool[0])
def test_tool_has_no_complaint(tool: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
