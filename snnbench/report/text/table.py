"""Tables in Markdown and as CSV, and the texts in their cells."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from snnbench.cases.case import Case
from snnbench.printable import uncalculated
from snnbench.report.section import Table
from snnbench.report.wording import title


def markdown(table: Table) -> str:
    """A Markdown table."""
    lines = [list(table.columns), ["---:" if numeric else "---" for numeric in table.numeric]]
    lines += [[escaped(cell).replace("|", "\\|") for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str) -> str:
    """A text in one line of Markdown, with escapes outside of code: `<class 'x'>` is a tag, and `__init__` is bold."""
    words, *rest = re.split(r"(`[^`]+`)", " ".join(text.split()))
    code, others = rest[::2], rest[1::2]
    plain = [re.sub(r"<(?=[A-Za-z/!?])|\*|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", each) for each in (words, *others)]
    return plain[0] + "".join(each + other for each, other in zip(code, plain[1:], strict=True))


def to_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV, one header line first; None is an empty field."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: uncalculated(value) for name, value in row.items()} for row in rows)
    return stream.getvalue()


def interval(low: float | None, high: float | None) -> str:
    """The ends of a ratio's interval."""
    return "-" if low is None or high is None else f"{low:.3f}-{high:.3f}"


def rounded(value: float | None) -> float | None:
    """A statistic with six digits, so that the last bits of platforms do not show."""
    return None if value is None else float(f"{value:.6g}")


def captions(cases: Iterable[Case], titled: Callable[[Case], str] = title) -> tuple[str, dict[Case, str]]:
    """The common part of the titles of all cases, and the rest of each title by case."""
    parts = {case: titled(case).replace(": ", ", ", 1).split(", ") for case in cases}
    common = [part for part in next(iter(parts.values()), []) if all(part in others for others in parts.values())]
    own = {case: ", ".join(part for part in words if part not in common) for case, words in parts.items()}
    return ", ".join(common), own
