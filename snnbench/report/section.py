"""A section of a report, as plain data: sentences, tables and charts, whatever shows them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text. The first `texts` columns hold words and the others numbers; `code` names columns to be typed."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    caption: str = ""
    code: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Chart:
    """A Vega-Lite specification without colours or a width, and the same in words and in numbers.

    `name` is that of its file and of its place in the page; `words` are for who cannot see it.
    """

    name: str
    title: str
    words: str
    specification: dict[str, Any]
    table: Table
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """`name` is its anchor; `sentences` open it, then come `answers`, (where, what) each; `remarks` are a list."""

    name: str
    title: str
    sentences: Sequence[str] = ()
    answers: Sequence[tuple[str, str]] = ()
    remarks: Sequence[str] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    closing: Sequence[str] = ()
    folded: Sequence[tuple[str, str]] = field(default=())
    """(summary, text as it stands) of what is shown only when asked for."""
