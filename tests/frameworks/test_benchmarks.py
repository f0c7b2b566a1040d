"""Tests of the benchmarks that import torch, or run commands: their help, an outcome, and the rounding of a card."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import card, outcome, summary
from tests.test_benchmarks import EVERY, ROOT, benchmarks


def test_every_benchmark_has_help() -> None:
    """One process shows the help of all: most of them import torch for it."""
    script = f"""
import sys
from benchmarks.__main__ import main
for name in {EVERY}:
    sys.argv = ["", name, "--help"]
    try:
        main()
    except SystemExit as ended:
        print(f"status {{ended.code}} of {{name}}")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    shown = done.stdout.split("usage: python -m benchmarks ")[1:]
    for name, text in zip(EVERY, shown, strict=True):
        assert text.startswith(f"{name} ") and text.endswith(f"status 0 of {name}\n"), done.stderr


@pytest.mark.parametrize(
    ("rounding", "expected"), list(zip(card.ROUNDINGS, ((0, 2, 1), (1, 2, 1), (0, 1, 0)), strict=True))
)
def test_rounding_to_tf32(rounding: str, expected: tuple[int, ...]) -> None:
    """Half, three halves and three quarters of a unit in the last of TF32's 10 bits."""
    operand = np.array([1 + 0.5 / 1024, 1 + 1.5 / 1024, 1 + 0.75 / 1024], np.float32)
    assert tuple((card.rounded(operand, rounding) - 1) * 1024) == expected


def test_outcome_has_the_tables_and_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "new" / "commands.json"
    done = benchmarks("commands", "--cells", "16", "--json", str(path))
    assert done.returncode == 0, done.stderr
    document = json.loads(path.read_text())
    assert document["benchmark"] == "commands" and document["arguments"] == ["--cells", "16"] and document["machine"]
    (table,) = document["tables"]
    assert [row[0] for row in table["rows"]] == ["`compare`", "`compare --explain`", "`rank`", "`report`"]
    assert outcome.shown(table) in done.stdout and f"{outcome.shown(table)}\n" in summary.section(document)
