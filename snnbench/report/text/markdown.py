"""Reports and tables in Markdown."""

import re
from collections.abc import Iterable, Iterator

from snnbench.report.section import Report, Section, Table


def markdown(report: Report, level: int = 2) -> str:
    """A report, whose title is a heading of this level, without its charts."""
    parts = [f"{'#' * level} {escaped(report.title)}"] if report.title else []
    parts += [escaped(report.about), _bullets(report.notes)]
    parts += [part for section in report.sections for part in _section(section, level + 1)]
    parts += map(escaped, report.ending)
    return "\n\n".join(filter(None, parts)) + "\n"


def _section(section: Section, level: int) -> Iterator[str]:
    if section.title:
        yield f"{'#' * level} {escaped(section.title)}"
        level += 1
    yield from map(escaped, section.sentences)
    yield _bullets(f"{where}: {what}" for where, what in section.answers)
    for each in section.tables:
        if each.caption:
            yield f"{'#' * level} {escaped(each.caption)}"
        yield table(each)
    yield _bullets(section.remarks)
    yield from map(escaped, section.closing)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


def table(of: Table) -> str:
    """A Markdown table."""
    lines = [list(of.columns), ["---:" if numeric else "---" for numeric in of.numeric]]
    lines += [[escaped(cell).replace("|", "\\|") for cell in row] for row in of.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str) -> str:
    """A text in one line of Markdown, with escapes outside of code: `<class 'x'>` is a tag, and `__init__` is bold."""
    words, *rest = re.split(r"(`[^`]+`)", " ".join(text.split()))
    code, others = rest[::2], rest[1::2]
    plain = [re.sub(r"<(?=[A-Za-z/!?])|\*|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", each) for each in (words, *others)]
    return plain[0] + "".join(each + other for each, other in zip(code, plain[1:], strict=True))
