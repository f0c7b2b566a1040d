"""Tests that every measured number of README and docs has a source: a recording, a constant, or a named other one."""

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from inspect import getmembers, isfunction, signature
from pathlib import Path

import pytest

from tests.report import test_recorded_sentences as recorded_sentences

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = (
    re.compile(r"<!-- ([\w ]+): start -->.*?<!-- \1: end -->", re.DOTALL),
    re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE),
    re.compile(r"<!--.*?-->", re.DOTALL),
)
"""Parts of a page that other tests compare with their source."""
UNITS = r"ns|us|µs|ms|s|KiB|MiB|GiB|GB/s|%"
MEASURED = re.compile(rf"\d[\d.,]*(?<=\d) ?(?:{UNITS})(?![A-Za-z0-9])|\d[\d.,]*(?<=\d) times\b")
SOURCES: dict[str, dict[str, str | list[str]]] = tomllib.loads(
    (ROOT / "tests" / "number_sources.toml").read_text(encoding="utf-8")
)
SIZES = {"ns": {"ms": 1e6, "s": 1e9}, "bytes": {"KiB": 1 << 10, "MiB": 1 << 20}}
"""Units of a page in those of constants; a constant without a unit is a share, or a number."""
KINDS = {"recording", "benchmark", "constant", "stated", "published"}


def paragraphs(text: str) -> Iterator[tuple[str, str]]:
    """(heading, words) of each paragraph of a page that is not generated."""
    for pattern in GENERATED:
        text = pattern.sub("", text)
    heading = "(top)"
    for paragraph in re.split(r"\n\n+", text):
        if title := re.match(r"#+ (.*)", paragraph):
            heading = title[1]
        yield heading, " ".join(paragraph.split())


def measured(text: str) -> dict[str, set[str]]:
    """The measured numbers below each heading of a page that has any."""
    numbers: dict[str, set[str]] = {}
    for heading, words in paragraphs(text):
        if numbers_here := set(MEASURED.findall(words)):
            numbers.setdefault(heading, set()).update(numbers_here)
    return numbers


def untraced(words: str, shown: set[str]) -> set[str]:
    """The measured numbers of a paragraph outside of the sentences that tests compare with recordings."""
    spans = [
        match.span()
        for sentence in shown
        if MEASURED.search(sentence)
        for match in re.finditer(re.escape(sentence), words)
    ]
    return {
        match[0]
        for match in MEASURED.finditer(words)
        if not any(start <= match.start() and match.end() <= end for start, end in spans)
    }


def given(page: str, heading: str) -> list[str]:
    """The sources of a heading."""
    entry = SOURCES.get(page, {}).get(heading, [])
    return [entry] if isinstance(entry, str) else entry


def named(source: str) -> set[str] | None:
    """The numbers that a source names; None if it stands for all."""
    _, equals, numbers = source.partition(" = ")
    return set(numbers.split(", ")) if equals else None


def sources() -> list[tuple[str, str, str]]:
    """(page, heading, source) of every entry."""
    return [
        (page, heading, source)
        for page, headings in SOURCES.items()
        for heading in headings
        for source in given(page, heading)
    ]


@pytest.fixture(scope="module")
def shown() -> dict[str, set[str]]:
    """Page -> what the tests of recorded sentences find on it. A test that fails here fails there, too."""
    for name, function in getmembers(recorded_sentences, isfunction):
        if name.startswith("test_") and not signature(function).parameters:
            function()
    return recorded_sentences.SHOWN


@pytest.mark.parametrize("page", [str(path.relative_to(ROOT)) for path in PAGES])
def test_every_number_has_a_source_and_every_source_a_number(page: str, shown: dict[str, set[str]]) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    numbers = measured(text)
    assert numbers.keys() == SOURCES.get(page, {}).keys()
    for heading, words in paragraphs(text):
        lists = [named(source) for source in given(page, heading) if source != "recording"]
        if None in lists:
            continue
        listed = set[str]().union(*(names for names in lists if names))
        is_recorded = "recording" in given(page, heading)
        traced = shown.get(Path(page).name, set()) if is_recorded else set()
        assert untraced(words, traced) <= listed, heading


@pytest.mark.parametrize("page", sorted(SOURCES))
def test_source_names_numbers_of_its_heading(page: str) -> None:
    numbers = measured((ROOT / page).read_text(encoding="utf-8"))
    for heading in SOURCES[page]:
        for source in given(page, heading):
            if not source.startswith("constant:"):  # a constant may have another unit
                assert (named(source) or set()) <= numbers[heading], heading


def test_recorded_headings_have_recorded_numbers(shown: dict[str, set[str]]) -> None:
    for page, heading, source in sources():
        if source == "recording":
            text = (ROOT / page).read_text(encoding="utf-8")
            words = [words for title, words in paragraphs(text) if title == heading]
            shown_here = shown.get(Path(page).name, set())
            assert any(untraced(each, shown_here) != untraced(each, set()) for each in words), (page, heading)


def test_number_outside_of_a_compared_sentence_is_noticed() -> None:
    words = "It takes 3 times as long, and 5 ms more, which is 2 % of 5 ms."
    assert untraced(words, {"takes 3 times as", "5 ms more"}) == {"2 %", "5 ms"}
    assert untraced(words, {words}) == set()
    assert untraced(words, {"and", "It"}) == {"3 times", "2 %", "5 ms"}


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
    assert measured(text) == {"A": {"5 ms"}}
    assert measured(text.replace("Nothing", "It is 3.5 times as fast")) == {"A": {"5 ms"}, "B": {"3.5 times"}}
