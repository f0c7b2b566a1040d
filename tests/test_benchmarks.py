"""Tests of the entry to the benchmarks, and that their summary is made from the outcomes in the repository."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import card, outcome, summary
from benchmarks.__main__ import NAMES, about

ROOT = Path(__file__).parents[1]
HELPERS = {
    "__init__",
    "__main__",
    "basecase",
    "contender_process",
    "kernel_contenders",
    "outcome",
    "summary",
    "synthetic",
    "turn",
}
EVERY = [name for names in NAMES.values() for name in names]


def benchmarks(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_every_module_is_listed_with_its_question() -> None:
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} == {*EVERY} | HELPERS
    listing = benchmarks().stdout
    for name in EVERY:
        assert f"  {name} " in listing and about(name) in listing
    assert max(map(len, listing.splitlines())) <= 130


def test_unknown_name_is_refused_with_the_list() -> None:
    done = benchmarks("kernel")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("python -m benchmarks: no benchmark is called 'kernel'\n")


@pytest.mark.parametrize("name", EVERY)
def test_help_needs_no_framework_but_its_own(name: str) -> None:
    done = benchmarks(name, "--help")
    assert done.returncode == 0 and f"usage: python -m benchmarks {name}" in done.stdout, done.stderr


def test_outcome_has_the_tables_and_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "new" / "commands.json"
    done = benchmarks("commands", "--cells", "16", "--json", str(path))
    assert done.returncode == 0, done.stderr
    document = json.loads(path.read_text())
    assert document["benchmark"] == "commands" and document["arguments"] == ["--cells", "16"] and document["machine"]
    (table,) = document["tables"]
    assert [row[0] for row in table["rows"]] == ["`compare`", "`compare --explain`", "`rank`", "`report`"]
    assert outcome.shown(table) in done.stdout and f"{outcome.shown(table)}\n" in summary.section(document)


def test_summary_is_made_from_the_outcomes() -> None:
    text = summary.README.read_text(encoding="utf-8")
    assert summary.spliced(text) == text
    assert summary.spliced(f"{summary.START}old{summary.END}") == summary.spliced(f"{summary.START}{summary.END}")
    with pytest.raises(ValueError, match="expected the marks"):
        summary.spliced("no marks")


@pytest.mark.parametrize(
    ("rounding", "expected"), list(zip(card.ROUNDINGS, ((0, 2, 1), (1, 2, 1), (0, 1, 0)), strict=True))
)
def test_rounding_to_tf32(rounding: str, expected: tuple[int, ...]) -> None:
    """Half, three halves and three quarters of a unit in the last of TF32's 10 bits."""
    operand = np.array([1 + 0.5 / 1024, 1 + 1.5 / 1024, 1 + 0.75 / 1024], np.float32)
    assert tuple((card.rounded(operand, rounding) - 1) * 1024) == expected
