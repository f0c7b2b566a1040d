"""The report's half of a measure: what it adds to the tables, the page and its charts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from snnbench.analysis.results import Result
from snnbench.report.overview import Overview
from snnbench.report.section import Section


@dataclass(frozen=True, slots=True)
class Shown:
    """What reports show of a measure if a result has its `metric` in the first phase.

    `heading(phase)` and `cell(result, phase)` are a column of the table of a case. A `section` follows that of the name
    `after` on a page. `sections(overview)` are tables over several cases in a report of words and tables.
    """

    metric: str
    heading: Callable[[str], str]
    cell: Callable[[Result, str], str]
    section: Callable[[Overview], Section] | None = None
    after: str = ""
    sections: Callable[[Overview], Iterable[Section]] = lambda overview: ()
