"""A sheet: columns of short texts for a terminal or in Markdown, with the texts of its numbers and cases."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snnbench.report.wording import title
from snnbench.workloads.case import Case

RIGHT = ("base", "new", "ratio", "time", "rank")
"""Columns of numbers, which are aligned to the right."""
UNITS = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")),
    "bytes": ((2**30, "GiB"), (2**20, "MiB"), (1024, "KiB")),
}


@dataclass(slots=True)
class Sheet:
    """Rows with a text for each column; `notes` has the note below a row, in a terminal, by the row's number."""

    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)

    def text(self) -> str:
        """Aligned columns."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[place]) for line in lines) for place in range(len(self.columns))]
        result = []
        for number, line in enumerate(lines):
            texts = [
                text.rjust(width) if name in RIGHT else text.ljust(width)
                for text, width, name in zip(line, widths, self.columns, strict=True)
            ]
            result.append("  ".join(texts).rstrip())
            if note := self.notes.get(number - 1):
                result.append(f"    {note}")
        return "\n".join(result)

    def markdown(self) -> str:
        """A Markdown table, with escapes for texts that would end a cell."""
        lines = [self.columns, [("---:" if name in RIGHT else "---") for name in self.columns]]
        lines += [[text.replace("|", "\\|") for text in row] for row in self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def to_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV, one header line first; None is an empty field."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def quantity(value: float, unit: str) -> str:
    """Nanoseconds or bytes in the largest unit that gives at least 1, with three digits."""
    size, name = next(((size, name) for size, name in UNITS[unit] if value >= size), UNITS[unit][-1])
    return f"{_digits(value / size)} {name}"


def quantities(values: Iterable[float], unit: str) -> str:
    """Several values, each as by `quantity`."""
    return ", ".join(quantity(value, unit) for value in values)


def interval(low: float | None, high: float | None) -> str:
    """The ends of a ratio's interval."""
    return "-" if low is None or high is None else f"{low:.3f}-{high:.3f}"


def rounded(value: float | None) -> float | None:
    """A statistic with six digits, so that the last bits of platforms do not show."""
    return None if value is None else float(f"{value:.6g}")


def captions(cases: Iterable[Case]) -> tuple[str, dict[Case, str]]:
    """The common part of the titles of all cases, and the rest of each title by case."""
    parts = {case: title(case).replace(": ", ", ", 1).split(", ") for case in cases}
    common = [part for part in next(iter(parts.values()), []) if all(part in others for others in parts.values())]
    own = {case: ", ".join(part for part in found if part not in common) for case, found in parts.items()}
    return ", ".join(common), own


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
