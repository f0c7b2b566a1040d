"""A report as plain data for every output: sections of sentences, tables and charts."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from snnbench.report.numbers import counted

PANELS = 16
"""The most charts of a section; the numbers of the others are in the tidy data."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text. The first `texts` columns hold words and the others numbers, unless `numbers` names those.

    `code` names columns shown as code. `leaving` names the columns that a narrow terminal or page leaves out, the first
    one first. `bars` names the column whose numbers a terminal also draws as bars. `anchors` has the name of each row
    for links in a page; a page lets a reader sort and filter a table with anchors. `targets` has for each row the
    address of a page about it, or an empty text. `empty` is the meaning of an empty cell, for which a page has a dot.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    caption: str = ""
    code: frozenset[str] = frozenset()
    numbers: Collection[str] | None = None
    leaving: Sequence[str] = ()
    bars: str = ""
    anchors: Sequence[str] = ()
    targets: Sequence[str] = ()
    empty: str = ""

    @property
    def numeric(self) -> list[bool]:
        """For each column, whether it holds numbers."""
        if self.numbers is None:
            return [index >= self.texts for index in range(len(self.columns))]
        return [name in self.numbers for name in self.columns]


@dataclass(frozen=True, slots=True)
class Chart:
    """A Vega-Lite specification without colours or a width, and the same in words and in numbers.

    `name` names its file and its place in the page; `words` describe it to a screen reader.
    """

    name: str
    title: str
    words: str
    specification: dict[str, Any]
    table: Table
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A section; `name` is its anchor. `sentences` open it, `answers` (where, what) follow; `remarks` are a list.

    `files` are (name, address) of the same data in other formats. `text` is preformatted, and follows the sentences.
    `brief` is the content in a few words, for a page that shows the section folded.
    """

    name: str
    title: str
    sentences: Sequence[str] = ()
    answers: Sequence[tuple[str, str]] = ()
    remarks: Sequence[str] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    closing: Sequence[str] = ()
    files: Sequence[tuple[str, str]] = ()
    text: str = ""
    folded: Sequence[tuple[str, str]] = field(default=())
    """(summary, preformatted text) of each part that is folded at first."""
    brief: str = ""

    @property
    def is_bare(self) -> bool:
        """Whether it has sentences only, such as the reason why it is left out."""
        parts = self.answers, self.remarks, self.tables, self.charts, self.closing, self.files, self.text, self.folded
        return not any(parts)

    @property
    def inside(self) -> str:
        """What a reader finds on unfolding it: `joules of one pass (4 charts, 1 table)`."""
        listed = [(len(self.charts), "chart"), (len(self.tables), "table")]
        counts = ", ".join(counted(count, word) for count, word in listed if count)
        return f"{self.brief} ({counts})" if self.brief and counts else self.brief or counts

    @classmethod
    def of_charts(
        cls, name: str, title: str, sentences: Sequence[str], makers: Sequence[Callable[[str], Chart]], brief: str = ""
    ) -> Self:
        """A section of the charts that these functions of a name draw."""
        charts = [make(f"{name}-{number}") for number, make in enumerate(makers[:PANELS], start=1)]
        left = len(makers) - PANELS
        closing = [f"{left} more charts are left out; their numbers are in the tidy data (--format csv)."]
        return cls(name, title, sentences, charts=charts, closing=closing if left > 0 else [], brief=brief)


@dataclass(frozen=True, slots=True)
class Report:
    """All that a command prints. `about` follows the title, `notes` are facts that hold for every table.

    A terminal shows the first line of the `ending` in bold.
    """

    title: str = ""
    about: str = ""
    notes: Sequence[str] = ()
    sections: Sequence[Section] = ()
    ending: Sequence[str] = ()
