"""Tests that every heading of README and docs with measured numbers names the source of these."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = (
    re.compile(r"<!-- ([\w ]+): start -->.*?<!-- \1: end -->", re.DOTALL),
    re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE),
    re.compile(r"<!--.*?-->", re.DOTALL),
)
"""Parts of a page that other tests compare with their source."""
UNITS = r"ns|us|µs|ms|s|KiB|MiB|GiB|GB/s|%"
MEASURED = re.compile(rf"\d ?(?:{UNITS})(?![A-Za-z0-9])|\d times\b")
SOURCES: dict[str, dict[str, str | list[str]]] = tomllib.loads(
    (ROOT / "tests" / "number_sources.toml").read_text(encoding="utf-8")
)
SIZES = {"ns": {"ms": 1e6, "s": 1e9}, "bytes": {"KiB": 1 << 10, "MiB": 1 << 20}}
"""Units of a page in those of constants; a constant without a unit is a share, or a number."""
KINDS = {"recording", "benchmark", "constant", "stated", "published"}


def measured(text: str) -> set[str]:
    """The headings above paragraphs of a page that hold a measured number."""
    for pattern in GENERATED:
        text = pattern.sub("", text)
    heading, headings = "(top)", set()
    for paragraph in re.split(r"\n\n+", text):
        if title := re.match(r"#+ (.*)", paragraph):
            heading = title[1]
        if MEASURED.search(paragraph):
            headings.add(heading)
    return headings


def sources() -> list[tuple[str, str, str]]:
    """(page, heading, source) of every entry."""
    return [
        (page, heading, source)
        for page, headings in SOURCES.items()
        for heading, given in headings.items()
        for source in ([given] if isinstance(given, str) else given)
    ]


@pytest.mark.parametrize("page", [str(path.relative_to(ROOT)) for path in PAGES])
def test_every_number_has_a_source_and_every_source_a_number(page: str) -> None:
    assert measured((ROOT / page).read_text(encoding="utf-8")) == set(SOURCES.get(page, {}))


def test_recorded_numbers_have_a_test() -> None:
    tests = (ROOT / "tests" / "report" / "test_recorded_sentences.py").read_text(encoding="utf-8")
    recorded = {Path(page).name for page, _, source in sources() if source == "recording"}
    assert recorded == set(re.findall(r'page\("([a-z-]+\.md)"\)', tests))


def test_sources_exist() -> None:
    assert all((ROOT / page).is_file() for page in SOURCES)
    for page, heading, source in sources():
        kind, _, where = source.partition(": ")
        assert kind in KINDS and bool(where) == (kind != "recording"), (page, heading)
        if kind == "benchmark":
            assert (ROOT / "benchmarks" / f"{where}.py").is_file(), where


@pytest.mark.parametrize(("page", "source"), [(page, text) for page, _, text in sources() if text[:9] == "constant:"])
def test_page_shows_the_value_of_a_constant(page: str, source: str) -> None:
    path, shown = source.removeprefix("constant: ").split(" = ")
    module, _, name = path.rpartition(".")
    value = getattr(import_module("snnbench." + module.replace("/", ".")), name)
    values = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
    amount, unit = shown.split()
    size = SIZES["ns"][unit] if name.endswith("_NS") else SIZES["bytes"].get(unit, 0.01 if unit == "%" else 1)
    assert any(each == pytest.approx(float(amount) * size) for each in values)
    assert shown in " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_a_number_without_a_source_is_noticed() -> None:
    generated = "```\n7 ms\n```\n\n## C\n\n<!-- x: start -->\n3 %\n<!-- x: end -->\n"
    text = f"# A\n\nIt took 5 ms.\n\n## B\n\nNothing.\n\n{generated}"
    assert measured(text) == {"A"}
    assert measured(text.replace("Nothing", "It is 3 times as fast")) == {"A", "B"}
