"""Write the generated parts of the pages: `python docs/hooks/fill.py`.

A part has a name, and its text is made from the code or from recordings. A part of a line is
`<span data-made="depth.times">13 to 26</span>`; a longer part stands between two comments. So a page has the text also
where nobody builds the documentation. A new part begins as `{{ depth.times }}`, and this command replaces the mark.

Each function of a source is named as its parts are: `depth` has the text of `depth.times`. A part without a text, and
a text without a part, is an error.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import explanations
import findings
import growth
import kernels
import open_neuromorphic
import readme
import reference

PART = re.compile(
    r"<!-- made: (?P<long>[\w.-]+) -->\n.*?\n<!-- end -->"
    r'|<span data-made="(?P<short>[\w.-]+)">.*?</span>'
    r"|\{\{\s*(?P<new>[\w.-]+)\s*\}\}",
    re.DOTALL,
)
DOCS = Path(__file__).parents[1]
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
SOURCES = (
    *(findings.findings, open_neuromorphic.open_neuromorphic, reference.notes, readme.proved, readme.gpu),
    growth.half,
    *explanations.SOURCES,
    *kernels.SOURCES,
)


def filled(markdown: str) -> str:
    """The page with the text of each part. Raises KeyError for an unknown name."""
    return PART.sub(lambda part: _written(_name(part)), markdown)


def unused(pages: Iterable[str]) -> list[str]:
    """The names of all texts that are on no page."""
    return sorted(texts().keys() - {_name(part) for page in pages for part in PART.finditer(page)})


@cache
def texts() -> dict[str, str]:
    """The text of every part."""
    recorded = {f"{source.__name__}.{name}": text for source in SOURCES for name, text in source().items()}
    generated = {name: generate() for name, generate in reference.GENERATORS.items()}
    return {name: text.strip() for name, text in (recorded | generated).items()}


def _name(part: re.Match[str]) -> str:
    return part["long"] or part["short"] or part["new"]


def _written(name: str) -> str:
    text = texts()[name]
    if "\n" in text:
        return f"<!-- made: {name} -->\n\n{text}\n\n<!-- end -->"
    return f'<span data-made="{name}">{text}</span>'


def write() -> None:
    """Write every page whose parts have changed. Raises ValueError for a text that is on no page."""
    pages = {path: path.read_text(encoding="utf-8") for path in PAGES}
    if names := unused(pages.values()):
        raise ValueError(f"made for no page: {', '.join(names)}")
    for path, page in pages.items():
        if (text := filled(page)) != page:
            path.write_text(text, encoding="utf-8")
            print(f"{path}: written")


if __name__ == "__main__":
    write()
