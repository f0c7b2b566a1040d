"""Reports drawn for a terminal: no row of a table is wrapped, words have a mark and a colour, and ratios a bar."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from snnbench.report.section import Report, Section, Table

MARKS = {
    **dict.fromkeys(("exact", "ready", "ok", "finished"), ("✓", "green")),
    "faster": ("▼", "green"),
    "slower": ("▲", "red"),
    **dict.fromkeys(("equivalent", "same", "baseline"), ("=", "cyan")),
    **dict.fromkeys(("deviates", "inconclusive", "warning", "contended", "missing"), ("~", "yellow")),
    **dict.fromkeys(("failed", "problem", "incorrect", "crash", "timeout", "lost"), ("✗", "red")),
    **dict.fromkeys(("import", "environment", "oom-host", "oom-device"), ("✗", "red")),
    **dict.fromkeys(("unsupported", "unavailable", "unprovable", "below-floor"), ("·", "dim")),
}
"""Word -> the mark before it, and its colour. The words read without both."""
GAP = "  "
"""The space between two columns of a table."""
BAR_WIDTHS = (8, 30)
"""The narrowest and the widest bar, in columns of the terminal."""
NARROWEST = 12
"""The fewest columns to which words are cut."""
BLOCKS = " ▏▎▍▌▋▊▉"


def show(console: Console, report: Report) -> None:
    """Print a report without its charts."""
    if report.title:
        console.print(Text.assemble((report.title, "bold"), f": {report.about}"))
    elif report.about:
        paragraph(console, report.about, style="bold")
    for fact in report.notes:
        note(console, fact)
    for section in report.sections:
        _show_section(console, section)
    if report.ending:
        console.print()
    for number, line in enumerate(report.ending):
        paragraph(console, line, style="" if number else "bold")


def _show_section(console: Console, section: Section) -> None:
    """The words, the tables under the title or each under its caption, and the remarks, each with a bold beginning."""
    tables = [(table.caption or section.title, table) for table in section.tables]
    if section.title and not any(heading == section.title for heading, _ in tables):
        console.print(Text(f"\n{section.title}", style="bold"))
    elif section.sentences or section.answers:
        console.print()
    for words in (*section.sentences, *(f"{where}: {what}" for where, what in section.answers)):
        paragraph(console, words, indent=2)
    if tables and not any(heading for heading, _ in tables):
        console.print()
    draw(console, tables, section.closing if tables else ())
    if section.remarks:
        console.print()
    for remark in section.remarks:
        head, colon, rest = remark.partition(": ")
        paragraph(console, Text.assemble((head + colon, "bold" if colon else ""), rest), indent=2)
    for line in () if tables else section.closing:
        note(console, line)


def draw(console: Console, tables: Sequence[tuple[str, Table]], legend: Sequence[str] = ()) -> None:
    """Print tables, each under its heading, as much of them as the terminal has room for; below, the legend once.

    First columns leave all tables, in the order of `leaving`; then the widest words are cut. A bar takes the room that
    is left. The last line of the legend names the columns that left.
    """
    tables = [(heading, without(table, _blank(table))) for heading, table in tables]
    omitted = max((leaving(table, console) for _, table in tables), key=len, default=[])
    for heading, table in tables:
        if heading:
            console.print(Text(f"\n{heading}", style="bold"))
        for line in _lines(without(table, omitted), console):
            console.print(line, no_wrap=True, overflow="crop", crop=True)
    for sentence in legend:
        note(console, sentence)
    if omitted:
        note(console, f"{console.width} columns leave out: {', '.join(omitted)} (wider, or piped, it shows them)")


def _blank(table: Table) -> list[str]:
    """The names of the columns without any text."""
    return [name for index, name in enumerate(table.columns) if not any(row[index] for row in table.rows)]


def leaving(table: Table, console: Console) -> list[str]:
    """The names of the columns for which the terminal has no room."""
    wanted = console.width - (BAR_WIDTHS[0] + len(GAP) if table.bars in table.columns else 0)
    names = [name for name in table.leaving if name in table.columns]
    return next((names[:n] for n in range(len(names)) if _total(_widths(without(table, names[:n]))) <= wanted), names)


def without(table: Table, names: Collection[str]) -> Table:
    """The table without these columns."""
    left = [index for index, name in enumerate(table.columns) if name not in names]
    numbers = [name for name, numeric in zip(table.columns, table.numeric, strict=True) if numeric]
    rows = [[row[index] for index in left] for row in table.rows]
    return replace(table, columns=[table.columns[index] for index in left], rows=rows, numbers=numbers)


def paragraph(console: Console, text: Text | str, indent: int = 0, style: str = "") -> None:
    """Print words in lines as wide as the terminal, indented."""
    for line in Text.assemble((text, style) if isinstance(text, str) else text).wrap(console, console.width - indent):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), no_wrap=True, overflow="crop")


def note(console: Console, words: str) -> None:
    """Print a remark on what is above."""
    paragraph(console, words, style="dim")


def marked(word: str, console: Console) -> Text:
    """A word with its mark and its colour, if it has them; words after the first have neither."""
    first, space, rest = word.partition(" ")
    symbol, style = MARKS.get(first, ("", ""))
    text = Text(f"{symbol} {first}" if symbol and shows_symbols(console) else first, style=style)
    return Text().append_text(text).append(space + rest)


def shows_symbols(console: Console) -> bool:
    """Whether the terminal's encoding has the marks and the blocks of bars."""
    return console.encoding.lower().startswith("utf")


def bar(value: float, largest: float, width: int) -> str:
    """A bar in eighths of a column of the terminal; the largest value takes the whole width."""
    eighths = min(8 * width, max(1, round(8 * width * value / largest)))
    whole, part = divmod(eighths, 8)
    return "█" * whole + (BLOCKS[part] if part else "")


def _lines(table: Table, console: Console) -> list[Text]:
    """The lines of a table: its header, a rule and its rows."""
    symbols = shows_symbols(console)
    words = [not numeric for numeric in table.numeric]
    rows = [
        [marked(cell, console) if is_word else Text(cell) for cell, is_word in zip(row, words, strict=True)]
        for row in table.rows
    ]
    header = [Text(name, style="bold") for name in table.columns]
    widths = [max(cell.cell_len for cell in cells) for cells in zip(header, *rows, strict=True)]
    widths = _cut(widths, words, console.width)
    room = console.width - _total(widths) - len(GAP)
    bars = _bars(table, min(room, BAR_WIDTHS[1])) if symbols and room >= BAR_WIDTHS[0] else []
    lines = [
        _joined(header, widths, words),
        Text(("─" if symbols else "-") * min(_total(widths), console.width), "dim"),
    ]
    for number, row in enumerate(rows):
        line = _joined(row, widths, words)
        lines.append(line.append(f"{GAP}{bars[number]}", "blue") if bars else line)
    return lines


def _joined(cells: Sequence[Text], widths: Sequence[int], words: Sequence[bool]) -> Text:
    line = Text()
    for index, (cell, width, is_word) in enumerate(zip(cells, widths, words, strict=True)):
        sized = cell.copy()
        sized.truncate(width, overflow="ellipsis")
        space = " " * (width - sized.cell_len)
        line.append(GAP if index else "")
        line.append_text(sized if is_word else Text(space).append_text(sized))
        line.append(space if is_word else "")
    line.rstrip()
    return line


def _bars(table: Table, width: int) -> list[str]:
    """A bar for each row of the column of bars; "" for a row without a number."""
    if table.bars not in table.columns:
        return []
    index = list(table.columns).index(table.bars)
    values = [_value(row[index]) for row in table.rows]
    largest = max((value for value in values if value is not None), default=0.0)
    return ["" if value is None or not largest else bar(value, largest, width) for value in values]


def _value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _widths(table: Table) -> list[int]:
    """The width of each column, with the mark of a word."""
    lines = [table.columns, *table.rows]
    return [max(cell_len(line[index]) + 2 * (line[index] in MARKS) for line in lines) for index in range(len(lines[0]))]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _cut(widths: list[int], words: Sequence[bool], width: int) -> list[int]:
    """The widths with the widest column of words cut, again and again, until all fit or none can be cut."""
    widths = list(widths)
    while (excess := _total(widths) - width) > 0:
        index = max((i for i, is_word in enumerate(words) if is_word), key=lambda i: widths[i], default=None)
        if index is None or widths[index] <= NARROWEST:
            break
        others = max((widths[i] for i, is_word in enumerate(words) if is_word and i != index), default=0)
        widths[index] = max(widths[index] - excess, min(others, widths[index] - 1), NARROWEST)
    return widths
