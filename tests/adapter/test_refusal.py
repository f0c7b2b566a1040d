"""Tests of refusals: each is defined once, and each gives its cell the right word."""

import ast
from pathlib import Path

from snnbench import adapter
from snnbench.adapter import refusal

ROOT = Path(__file__).parents[2]
FILES = [path for folder in ("snnbench", "adapters", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
NAMES = {"Unsupported", "Unavailable"}


def test_each_refusal_is_defined_once() -> None:
    """Two classes of one name once made a missing compiler `unsupported`: an adapter's `except` missed the other."""
    defined = [
        (node.name, path.relative_to(ROOT).as_posix())
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name in NAMES
    ]
    assert sorted(defined) == [(name, "snnbench/adapter/refusal.py") for name in sorted(NAMES)]
    assert (adapter.Unsupported, adapter.Unavailable) == (refusal.Unsupported, refusal.Unavailable)
