"""Tests of tables drawn for a terminal: columns leave in their order, words are cut last, bars follow the numbers."""

from io import BytesIO, StringIO, TextIOWrapper

import pytest
from rich.cells import cell_len
from rich.console import Console

from snnbench.report.section import Table
from snnbench.report.terminal.drawing import bar, draw, paragraph

NAMES = ("library", "verdict", "ratio", "peak", "version", "remark")
ROWS = [
    ("a-library/with-a-long-variant", "exact", "0.50", "12.5", "1.0.0", ""),
    ("b", "deviates", "2.00", "7", "2.13.0", ""),
    ("c", "crash", "-", "-", "1.1", ""),
]
TABLE = Table(NAMES, ROWS, numbers=("ratio", "peak"), leaving=("peak", "version"), bars="ratio")


def drawn(columns: int, table: Table = TABLE, legend: tuple[str, ...] = ()) -> list[str]:
    stream = StringIO()
    console = Console(file=stream, width=columns, force_terminal=True, color_system=None, legacy_windows=False)
    draw(console, [("", table)], legend)
    return stream.getvalue().splitlines()


def test_wide_terminal_shows_every_column_with_text() -> None:
    header, rule, *rows = drawn(100)
    assert header.split() == ["library", "verdict", "ratio", "peak", "version"]
    assert set(rule) == {"─"} and len(rows) == 3


@pytest.mark.parametrize(
    ("columns", "gone"), [(100, ""), (72, "peak"), (66, "peak, version"), (48, "peak, version"), (30, "peak, version")]
)
def test_columns_leave_in_their_order_and_are_named(columns: int, gone: str) -> None:
    lines = drawn(columns)
    assert max(map(cell_len, lines)) <= columns
    named = " ".join(line for line in lines if line).partition(f"{columns} columns leave out: ")[2]
    assert named.startswith(gone) if gone else not named
    assert [name for name in ("peak", "version") if name in lines[0]] == [
        name for name in ("peak", "version") if name not in gone
    ]


def test_longest_words_are_cut_when_no_column_may_leave() -> None:
    lines = drawn(40, Table(("library", "verdict", "ratio"), [row[:3] for row in ROWS], texts=2))
    assert max(map(cell_len, lines)) <= 40
    assert lines[2].startswith("a-library") and "…" in lines[2] and lines[2].endswith("0.50")
    assert "deviates" in lines[3], "the shorter words are whole"


def test_numbers_end_in_one_column_and_have_bars() -> None:
    _, _, first, second, third = drawn(100)
    assert first.index("0.50") == second.index("2.00") and first.endswith("1.0.0  ███████▌")
    assert second.endswith("2.13.0  " + "█" * 30) and "█" not in third


@pytest.mark.parametrize(("value", "text"), [(8.0, "█" * 8), (4.0, "█" * 4), (0.5, "▌"), (0.001, "▏"), (3.25, "███▎")])
def test_bar_is_proportional_in_eighths(value: float, text: str) -> None:
    assert bar(value, 8.0, 8) == text


def test_words_have_marks_where_the_terminal_has_symbols() -> None:
    assert [line.split()[1] for line in drawn(100)[2:]] == ["✓", "~", "✗"]
    written = BytesIO()
    stream = TextIOWrapper(written, encoding="ascii", write_through=True)
    draw(Console(file=stream, width=100, force_terminal=True, color_system=None), [("", TABLE)])
    assert [line.split()[1] for line in written.getvalue().decode("ascii").splitlines()[2:]] == [
        "exact",
        "deviates",
        "crash",
    ]


def test_legend_stands_once_below_all_tables() -> None:
    stream = StringIO()
    console = Console(file=stream, width=60, force_terminal=True, color_system=None)
    draw(console, [("first", TABLE), ("second", TABLE)], ["ratio: over the baseline"])
    text = stream.getvalue()
    assert text.count("ratio: over the baseline") == 1 and text.count("leave out") == 1
    assert text.index("first") < text.index("second") < text.index("ratio: over")


def test_paragraph_breaks_between_words() -> None:
    stream = StringIO()
    paragraph(Console(file=stream, width=20, color_system=None), "one two three four five six seven", indent=2)
    assert stream.getvalue().splitlines() == ["  one two three four", "  five six seven"]
