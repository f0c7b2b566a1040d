"""The report's half of a measure: what it adds to the tables, the page and its charts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from snnbench.analysis.results import Result
from snnbench.cases.case import Case
from snnbench.report.findings import Findings
from snnbench.report.section import Section, Table

Titled = tuple[str, Table, str]
"""A table over several cases, with its title and a legend."""


def no_tables(results: Mapping[Case, Sequence[Result]], phase: str) -> Iterable[Titled]:
    """Have none."""
    return ()


@dataclass(frozen=True, slots=True)
class Shown:
    """What reports show of a measure if a result has its `metric` in the first phase.

    `heading(phase)` and `cell(result, phase)` are a column of the table of a case. A `section` follows that of the name
    `after` on a page. `tables(results, phase)` are tables over several cases, without rows if there is nothing to show.
    """

    metric: str
    heading: Callable[[str], str]
    cell: Callable[[Result, str], str]
    section: Callable[[Findings], Section] | None = None
    after: str = ""
    tables: Callable[[Mapping[Case, Sequence[Result]], str], Iterable[Titled]] = no_tables
