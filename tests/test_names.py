"""Tests of names: every variable, argument and function of the package is named for its content or its action."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "snnbench"
NOT_NAMES = {"found", "one", "told", "said", "asked", "kept", "place", "places"}


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


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_names_say_what_they_hold(path: Path) -> None:
    named = bound(ast.parse(path.read_text(encoding="utf-8")))
    assert not [f"{path}:{line}: {name}" for line, name in named if name in NOT_NAMES]


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
def test_a_name_that_holds_anything_is_noticed(source: str, names: list[str]) -> None:
    assert [name for _, name in bound(ast.parse(source)) if name in NOT_NAMES] == names
