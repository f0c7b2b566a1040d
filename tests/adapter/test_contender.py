"""Tests of patterns that select contenders."""

from pathlib import Path

import pytest

from snnbench.adapter import reading
from snnbench.adapter.contender import UnknownContender, find, find_all
from snnbench.adapter.declaration import Adapter

VARIANTS = {"torch-loop": ["unbind", "index"], "norse": ["box", "lif", "index"]}


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, Adapter]:
    for name, variants in VARIANTS.items():
        lines = ["BACKEND = 'numpy'", f"VARIANTS = {dict.fromkeys(variants, 'a way')!r}", "def build(*_): ..."]
        (tmp_path / f"{name}.py").write_text("\n".join(lines))
    return {name: reading.read(tmp_path / f"{name}.py") for name in VARIANTS}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("norse", ["norse/box"]),
        ("norse/lif", ["norse/lif"]),
        ("norse/*", ["norse/box", "norse/lif", "norse/index"]),
        ("*", ["torch-loop/unbind", "norse/box"]),
        ("*/index", ["torch-loop/index", "norse/index"]),
        ("*/*", ["torch-loop/unbind", "torch-loop/index", "norse/box", "norse/lif", "norse/index"]),
    ],
)
def test_pattern_selects_contenders_in_adapter_order(
    adapters: dict[str, Adapter], pattern: str, expected: list[str]
) -> None:
    assert ["/".join(contender) for contender in find(pattern, adapters)] == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("norze", "unknown library 'norze' (did you mean 'norse'?)"),
        ("brian/x", "unknown library 'brian' (known: torch-loop, norse)"),
        ("norse/lift", "norse: unknown variant 'lift' (did you mean 'lif'?)"),
        ("norse/", "norse: unknown variant '' (known: box, lif, index)"),
        ("*/unbnd", "*: unknown variant 'unbnd' (did you mean 'unbind'?)"),
    ],
)
def test_unknown_name_is_refused_with_suggestions(adapters: dict[str, Adapter], pattern: str, expected: str) -> None:
    with pytest.raises(UnknownContender) as caught:
        find(pattern, adapters)
    assert str(caught.value) == expected


def test_exclamation_mark_removes_earlier_matches(adapters: dict[str, Adapter]) -> None:
    matches, errors = find_all(["*/*", "!*/index", "norse/lif", "torch-loop/index"], adapters)
    assert ["/".join(one) for one in matches] == ["torch-loop/unbind", "norse/box", "norse/lif", "torch-loop/index"]
    assert errors == []
    matches, errors = find_all(["norse", "!norze", "!norse"], adapters)
    assert matches == [] and [str(error) for error in errors] == ["unknown library 'norze' (did you mean 'norse'?)"]


def test_every_name_is_unknown_without_adapters() -> None:
    with pytest.raises(UnknownContender, match=r"unknown library '\*' \(known: none\)"):
        find("*", {})
