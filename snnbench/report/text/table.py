"""Tables as CSV, and the texts in the cells of tables."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from snnbench.cases.case import Case
from snnbench.printable import uncalculated
from snnbench.report.wording import heading


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


def captions(cases: Iterable[Case], titled: Callable[[Case], str] = heading) -> tuple[str, dict[Case, str]]:
    """The common part of the titles of all cases, and the rest of each title by case."""
    parts = {case: titled(case).replace(": ", ", ", 1).split(", ") for case in cases}
    common = [part for part in next(iter(parts.values()), []) if all(part in others for others in parts.values())]
    own = {case: ", ".join(part for part in words if part not in common) for case, words in parts.items()}
    return ", ".join(common), own
