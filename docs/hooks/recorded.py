"""The hook that puts numbers, sentences and tables of recordings into the pages when the documentation is built.

A mark such as `{{ depth.times }}` stands for the text that the function `depth` has by the name `times`. So every such
number comes from a recording, and another recording changes it. A mark without a text, and a text without a mark, is an
error.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import explanations
import findings
import open_neuromorphic

MARK = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
PAGES = Path(__file__).parents[1]
SOURCES = (findings.findings, open_neuromorphic.open_neuromorphic, *explanations.SOURCES)


def on_pre_build(**_: Any) -> None:
    """Called by mkdocs before it reads the pages."""
    if names := unused(page.read_text(encoding="utf-8") for page in PAGES.rglob("*.md")):
        raise ValueError(f"made from recordings, and on no page: {', '.join(names)}")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    return expand(markdown)


def expand(markdown: str) -> str:
    """The page with a text in the place of each mark. Raises KeyError for an unknown mark."""
    return MARK.sub(lambda mark: texts()[mark[1]], markdown)


def unused(pages: Iterable[str]) -> list[str]:
    """The names of all texts that no page has a mark for."""
    return sorted(texts().keys() - {name for page in pages for name in MARK.findall(page)})


@cache
def texts() -> dict[str, str]:
    """The text for every mark."""
    return {f"{source.__name__}.{name}": text.strip() for source in SOURCES for name, text in source().items()}
