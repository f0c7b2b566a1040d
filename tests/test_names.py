"""Tests of names: a variable, an argument and a function are named for content or action, a test for what it shows."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("snnbench", "adapters", "benchmarks", "docs", "tests")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
NOT_NAMES = {"found", "one", "told", "said", "asked", "kept", "place", "places"}
NOT_IN_TEST_NAMES = {"what", "whatever", "who", "whoever", "whom", "whose", "those", "told", "said", "asked", "nobody"}
LONGEST_TEST_NAME = 60


def bound(node: ast.AST, short_lived: bool = False) -> Iterator[tuple[int, str]]:
    """(line, name) of every variable, argument and function, without variables of comprehensions and of lambdas."""
    for child in ast.iter_child_nodes(node):
        short = short_lived or isinstance(child, ast.comprehension | ast.Lambda)
        if isinstance(child, ast.FunctionDef):
            short = False
            yield child.lineno, child.name
        match child:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if not short:
                yield child.lineno, name
        yield from bound(child, short)


def is_plain(test: str) -> bool:
    """Whether the name of a test is short and without riddling words."""
    return len(test) <= LONGEST_TEST_NAME and not NOT_IN_TEST_NAMES & set(test.split("_"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_are_specific(path: Path) -> None:
    named = list(bound(ast.parse(path.read_text(encoding="utf-8"))))
    assert not [f"{path}:{line}: {name}" for line, name in named if name in NOT_NAMES]
    assert not [f"{path}:{line}: {name}" for line, name in named if name.startswith("test_") and not is_plain(name)]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = 1", ["found"]),
        ("def told(one): pass", ["told", "one"]),
        ("[one for one in x]", []),
        ("sorted(x, key=lambda one: one.y)", []),
        ("for place in x: pass", ["place"]),
        ("records = 1", []),
    ],
)
def test_vague_name_is_noticed(source: str, names: list[str]) -> None:
    assert [name for _, name in bound(ast.parse(source)) if name in NOT_NAMES] == names


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("test_malformed_reply_is_rejected", True),
        ("test_what_is_no_reply_is_not_taken_for_one", False),
        ("test_who_may_measure_beside_whom", False),
        (f"test_{'a' * 55}", True),
        (f"test_{'a' * 56}", False),
    ],
)
def test_riddling_test_name_is_noticed(name: str, plain: bool) -> None:
    assert is_plain(name) is plain
